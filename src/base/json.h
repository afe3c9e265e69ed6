// JSON: a strict parser (depth and duplicate keys checked, UTF-8 checked) and a reader that
// remembers which keys were read, so that a config key that nobody understood can be refused by
// name.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>  // files that look into a value include json.hpp

#include "base/status.h"

namespace tq {

using Json = nlohmann::json;
// Keeps the order of keys: chat templates and tool schemas need it.
using OrderedJson = nlohmann::ordered_json;

// Errors: kCorrupt with line and column. `where` names the file in messages. max_depth bounds
// recursion. Python's NaN / Infinity literals are refused.
Result<Json> ParseJson(std::string_view text, std::string_view where, int max_depth = 256);
Result<OrderedJson> ParseOrderedJson(std::string_view text, std::string_view where,
                                     int max_depth = 256);

// Typed access to one JSON object. Getters note the key as read; a wrong type is an error recorded
// in status() (the first one wins) and the default is returned, so parsers read straight through
// and check once at the end.
class ConfigReader {
 public:
  ConfigReader(const Json& object, std::string where);

  bool Has(std::string_view key) const;  // present and not null; marks it read
  int64_t Int(std::string_view key, int64_t default_value);
  int64_t RequiredInt(std::string_view key, int64_t min_value, int64_t max_value);
  double Number(std::string_view key, double default_value);
  bool Bool(std::string_view key, bool default_value);
  std::string String(std::string_view key, std::string default_value);
  std::vector<std::string> StringList(std::string_view key);
  std::vector<int64_t> IntList(std::string_view key);  // empty when absent
  // The value of the first of `keys` that is present: one setting under several names.
  int64_t IntOf(std::initializer_list<std::string_view> keys, int64_t default_value);
  // The raw value (marks it read), or nullptr.
  const Json* Raw(std::string_view key);
  void Ignore(std::initializer_list<std::string_view> keys);
  void Fail(Status status);

  const Status& status() const { return status_; }
  const std::string& where() const { return where_; }
  std::vector<std::string> UnreadKeys() const;

 private:
  const Json* Find(std::string_view key) const;
  // items: what they are, for the message.
  template <typename T>
  std::vector<T> List(std::string_view key, bool (*is_item)(const Json&), const char* items);
  const Json& object_;
  std::string where_;
  mutable std::set<std::string, std::less<>> read_;
  Status status_;
};

}  // namespace tq

// Typed access to the metadata of a GGUF file. Like ConfigReader: getters note the key as read, the
// first failure is kept in status() and a default is returned, so readers read straight through.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/gguf_container.h"

namespace tq {

class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string where);

  const std::string& architecture() const { return architecture_; }
  // "block_count" -> "llama.block_count".
  std::string Arch(std::string_view key) const { return architecture_ + '.' + std::string(key); }

  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // The value, marked read, or null.
  const GgufValue* Find(std::string_view key) const;
  // The array, or null with an error recorded when the key is missing or no array.
  const GgufValue* Array(std::string_view key);

  // Integers of any type; an array per layer counts when all its items agree.
  int64_t Int(std::string_view key, int64_t default_value, int64_t min_value, int64_t max_value);
  int64_t RequiredInt(std::string_view key, int64_t min_value, int64_t max_value);
  double Float(std::string_view key, double default_value);  // finite
  double RequiredFloat(std::string_view key);
  bool Bool(std::string_view key, bool default_value);
  std::string String(std::string_view key, std::string default_value);
  std::string RequiredString(std::string_view key);

  void Ignore(std::initializer_list<std::string_view> keys) const;
  void Fail(Status status);
  void Bad(std::string_view key, const std::string& what);     // kCorrupt, names file and key
  void Refuse(std::string_view key, const std::string& what);  // kUnsupported, likewise
  const Status& status() const { return status_; }
  const std::string& where() const { return where_; }
  std::vector<std::string> WithPrefix(std::string_view prefix) const;
  // Keys of the architecture that nobody read: each may change the mathematics.
  std::vector<std::string> UnreadArchKeys() const;

 private:
  void Missing(std::string_view key);

  const GgufFile& file_;
  std::string where_;
  std::string architecture_;
  mutable std::set<std::string, std::less<>> read_;
  Status status_;
};

}  // namespace tq

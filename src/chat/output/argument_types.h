// ToolTypes: which JSON types the arguments of the offered tools have, and how a value that a model
// wrote without quotes becomes JSON of that type. Private to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/messages.h"

namespace tq {

struct TypeSet {
  bool string = false;
  bool integer = false;
  bool number = false;
  bool boolean = false;
  bool object = false;
  bool array = false;
  bool null = false;

  bool empty() const { return !(string || integer || number || boolean || structured() || null); }
  bool structured() const { return object || array; }
  bool only_string() const { return string && !(integer || number || boolean || structured()); }
};

class ToolTypes {
 public:
  explicit ToolTypes(const std::vector<ToolSpec>& tools);

  bool Knows(std::string_view tool) const { return tools_.find(tool) != tools_.end(); }
  // Empty: not said.
  TypeSet TypeOf(std::string_view tool, std::string_view key) const;
  // The argument at a position; nullopt: there is none.
  std::optional<std::string> KeyAt(std::string_view tool, size_t position) const;

 private:
  using Argument = std::pair<std::string, TypeSet>;
  std::map<std::string, std::vector<Argument>, std::less<>> tools_;
};

struct ValueRules {
  bool untyped_is_string = true;
  bool null_is_word = true;
};

// The JSON of a value; nullopt: it is none of its types.
std::optional<std::string> TypedJson(std::string_view text, const TypeSet& types,
                                     const ValueRules& rules);

}  // namespace tq

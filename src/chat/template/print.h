// Values as text: str(), repr(), json.dumps(), and the names of types in messages.
#pragma once

#include "chat/template/value.h"

namespace tq::jinja {

// type(value).__name__
std::string_view TypeName(const Value& value);
// "'dict object'", "None"
std::string DescribeType(const Value& value);

Result<std::string> Str(Runtime& rt, const Value& value);
Result<std::string> Repr(Runtime& rt, const Value& value);
// repr() of a text; with ascii_only also what is not ASCII is escaped.
std::string ReprText(std::string_view text, bool ascii_only = false);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;
  std::string indent;  // of one level, when pretty
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// Errors: a value that JSON cannot carry.
Result<std::string> DumpJson(Runtime& rt, const Value& value, const JsonStyle& style);

}  // namespace tq::jinja

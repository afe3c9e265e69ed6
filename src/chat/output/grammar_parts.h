// Parts of a structural tag. Private to this folder.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq::grammar {

inline OrderedJson Text(std::string_view text) {
  return {{"type", "const_string"}, {"value", text}};
}
inline OrderedJson Regex(std::string_view pattern) {
  return {{"type", "regex"}, {"pattern", pattern}};
}
// White space, as the model likes it.
inline OrderedJson Space() { return Regex("[ \\n\\r\\t]{0,8}"); }
inline OrderedJson Schema(OrderedJson schema) {
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}, {"max_whitespace_cnt", 8}};
}
inline OrderedJson Sequence(std::vector<OrderedJson> parts) {
  return {{"type", "sequence"}, {"elements", std::move(parts)}};
}
inline OrderedJson OneOf(std::vector<OrderedJson> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return {{"type", "or"}, {"elements", std::move(parts)}};
}
inline OrderedJson Optional(OrderedJson part) {
  return {{"type", "optional"}, {"content", std::move(part)}};
}
// Free text up to the first `end`.
inline OrderedJson TextUntil(std::string_view begin, std::string_view end) {
  return {{"type", "tag"},
          {"begin", begin},
          {"content", {{"type", "any_text"}}},
          {"end", OrderedJson::array({end})}};
}
// One, or several with something between them.
inline OrderedJson List(const OrderedJson& item, const OrderedJson& between, bool several) {
  if (!several) return item;
  return Sequence({item, {{"type", "star"}, {"content", Sequence({between, item})}}});
}

}  // namespace tq::grammar

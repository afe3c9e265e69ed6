#include <fmt/format.h>

#include "grammar/json_schema.h"

namespace tq {
namespace {

// One of the alternatives at the top of a pattern, without its anchors.
struct Alternative {
  std::string body;
  bool from_start = false;
  bool to_end = false;
};

std::string Whole(const Alternative& alternative) {
  return fmt::format("{}({}){}", alternative.from_start ? "" : ".*", alternative.body,
                     alternative.to_end ? "" : ".*");
}

}  // namespace

Result<std::string> AnchorPattern(std::string_view pattern) {
  std::vector<Alternative> alternatives(1);
  int depth = 0;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    Alternative& now = alternatives.back();
    const char c = pattern[i];
    const bool at_top = !in_class && depth == 0;
    if (c == '\\' && i + 1 < pattern.size()) {
      now.body += pattern.substr(i, 2);
      ++i;
      continue;
    }
    if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    } else if (c == '^' || c == '$') {
      const bool starts = c == '^' && at_top && now.body.empty();
      const bool ends = c == '$' && at_top && (i + 1 == pattern.size() || pattern[i + 1] == '|');
      if (!starts && !ends) {
        return Unsupported(
            fmt::format("anchor '{}' at character {}: only at the beginning or the "
                        "end of the whole pattern",
                        c, i + 1));
      }
      (starts ? now.from_start : now.to_end) = true;
      continue;
    } else if (c == '|' && at_top) {
      alternatives.emplace_back();
      continue;
    }
    now.body += c;
  }
  // Without need nothing is wrapped: the compiler's errors then speak of what the caller wrote.
  if (alternatives.size() == 1 && alternatives[0].from_start && alternatives[0].to_end) {
    return alternatives[0].body;
  }
  std::string out;
  for (const Alternative& alternative : alternatives) {
    if (!out.empty()) {
      out += '|';
    }
    out += Whole(alternative);
  }
  return out;
}

}  // namespace tq

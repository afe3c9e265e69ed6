// Makes a JSON Schema ready for the grammar compiler, so that nothing in it is dropped silently:
// what the compiler would pass over is rewritten where the meaning stays, else refused by name
// (kRefuse) or taken out and noted (kRelax: tool schemas of agents, where one odd keyword must not
// stop the whole agent). The rules are in docs/structured-output.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tq {

enum class SchemaMode : uint8_t { kRefuse, kRelax };

struct PreparedSchema {
  std::string text;                  // JSON, keys in the order of the original
  std::vector<std::string> relaxed;  // "/properties/a: not: ...": what is no longer enforced
};

// Says whether the grammar compiler takes a regular expression.
using RegexCheck = std::function<Status(const std::string& regex)>;

// Errors: kInvalidArgument with JSON pointer and keyword (no schema, or contradictory), the same
// for what cannot be enforced (kRefuse).
Result<PreparedSchema> PrepareSchema(std::string_view schema, SchemaMode mode,
                                     const RegexCheck& check_regex);

// `pattern` has JSON Schema's meaning: found anywhere. The result matches the whole string.
// Errors: kUnsupported for an anchor in the middle.
Result<std::string> AnchorPattern(std::string_view pattern);

}  // namespace tq

// Template source -> tokens, with trim_blocks and lstrip_blocks on and one trailing newline
// dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tq::jinja {

enum class TokenType : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string text;  // decoded when a string
  int64_t integer = 0;
  double real = 0;
};

// Errors: kCorrupt naming the line.
Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace tq::jinja

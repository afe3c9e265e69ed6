// A tokenizer of single bytes with a chat template, for checkpoints that come without one.
#pragma once

#include <string>

namespace tq::test {

// Byte b is id b + 10; <s> 1, </s> 2, <|user|> 3, <|assistant|> 4.
inline constexpr int kFirstByteId = 10;

std::string ByteTokenizerJson();    // tokenizer.json
std::string ByteTokenizerConfig();  // tokenizer_config.json

}  // namespace tq::test

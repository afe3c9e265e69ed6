// The tiny llama of the test data with a tokenizer of single bytes and a chat template, so that
// text goes in and out.
#pragma once

#include <string>

namespace tq::test {

// Ids of that tokenizer: byte b is id b + 10; <s> 1, </s> 2, <|user|> 3, <|assistant|> 4.
inline constexpr int kFirstByteId = 10;

void WriteSmallCheckpoint(const std::string& folder);

}  // namespace tq::test

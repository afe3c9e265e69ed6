// The tiny llama of the test data with the tokenizer of byte_tokenizer.h, so that text goes in and
// out.
#pragma once

#include <string>

#include "support/byte_tokenizer.h"

namespace tq::test {

void WriteSmallCheckpoint(const std::string& folder);

}  // namespace tq::test

// Files of tiktoken: a line "base64 rank" for each token. Special tokens and the class of the
// tokenizer come from tokenizer_config.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/pipeline.h"

namespace tq::tok {

// Whether a file begins like a tiktoken file.
bool LooksLikeTiktoken(std::string_view file);

// The model and what goes with it, without special tokens.
// Errors: kCorrupt with the line, kUnsupported (a tokenizer_class whose expression is unknown).
Result<PipelineParts> LoadTiktokenParts(std::string_view file, const std::string& where,
                                        std::string_view tokenizer_class);

// Call after the special tokens are known: the other ids behind the ranks are reserved tokens.
Status AddReservedTokens(const std::string& where, PipelineParts* parts);

}  // namespace tq::tok

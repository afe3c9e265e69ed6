// Texts of a request as ids, and log probabilities as JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "sampling/logprobs.h"
#include "tokenizer/tokenizer.h"

namespace tq {

// SamplingParams::bad_words: every way in which the words begin a token, at the start of a text and
// after a space.
std::vector<std::vector<int32_t>> BadWordIds(const Tokenizer& tokenizer,
                                             const std::vector<std::string>& words);

// SamplingParams::dry_breakers: every token that has one of the texts in it, and the texts' own
// ids. Cost: looks at every token of the vocabulary.
std::vector<std::vector<int32_t>> DryBreakerIds(const Tokenizer& tokenizer,
                                                const std::vector<std::string>& texts);
// What requests that name none break at.
std::vector<std::string> DefaultDryBreakers();

// {"content": [{"token", "id", "logprob", "bytes", "top_logprobs": [the same without the last]}]}.
// "bytes" are those of the token, half a character too; "token" is what is UTF-8 of them.
// tokenizer may be null: ids only. Requires: as many logprobs as ids.
OrderedJson LogprobsJson(const Tokenizer* tokenizer, std::span<const int32_t> ids,
                         std::span<const TokenLogprobs> logprobs);

}  // namespace tq

// Log probabilities of shown tokens, in the forms of the OpenAI APIs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "chat/request_json.h"
#include "server/shown_tokens.h"
#include "tokenizer/tokenizer.h"

namespace tq::server {

// "logprobs": true with "top_logprobs": 0 to 20 -> alternatives for each token; -1: none are
// wanted. Errors: a number without "logprobs".
Result<int> ReadChatLogprobs(const RequestNode& body);

// [{"token", "logprob", "bytes", "top_logprobs"}, ...]: of chat completions and responses.
OrderedJson TokenList(const Tokenizer& tokenizer, std::span<const ShownToken> tokens);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}: of completions.
class CompletionLogprobs {
 public:
  // Appends the tokens of a text. Offsets count characters from the answer's begin.
  void Add(const Tokenizer& tokenizer, const std::string& text, std::span<const ShownToken> tokens);
  // Characters of a text that has no tokens.
  void Skip(const std::string& text);
  // What was added since the last time.
  OrderedJson Take();

 private:
  OrderedJson json_;
  size_t characters_ = 0;
};

}  // namespace tq::server

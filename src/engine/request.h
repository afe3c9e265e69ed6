// GenerateRequest: what a caller wants, in ids. The engine knows no text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/prefix_key.h"
#include "engine/pooling.h"
#include "sampling/constraint.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"

namespace tq {

struct GenerateRequest {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  int64_t max_tokens = 512;       // -1: until the context is full
  int64_t min_tokens = 0;         // end and stop ids cannot come before this many tokens
  std::vector<int32_t> end_ids;   // end of turn: not part of the answer
  std::vector<int32_t> stop_ids;  // the caller's: likewise. Ids beyond the vocabulary never come
  bool ignore_end = false;        // end ids never come; stop ids still end the answer
  int num_logprobs = -1;          // 0 to 20 alternatives with each id; -1: no logprobs
  int64_t loop_limit = 0;         // ends an answer that says a block so many times in a row; 0: off
  // Says what may come; its own for each request. The answer ends when it IsTerminated.
  std::shared_ptr<Constraint> constraint;
  int priority = 0;  // the higher is served first; may push a lower one back
  // What ids of the prompt stand for beyond themselves (images): part of the prefix cache's key.
  std::vector<TokenExtra> extras;
  // No answer, but one vector of the prompt: TokenStream::embedding(). The prompt may fill the
  // context; what is about answers does not count.
  std::optional<Pooling> pooling = {};

  // Errors: kInvalidArgument naming the field, what was expected and found.
  Status Validate(int64_t vocab_size, int64_t max_context) const;
};

// Answer `index` of several to one request: a seed and a constraint of its own.
GenerateRequest RequestOfAnswer(const GenerateRequest& request, int64_t index);

enum class FinishReason : uint8_t { kNone, kStop, kLength, kLoop, kCancelled, kError };
std::string_view FinishReasonName(FinishReason reason);

struct GenerateStats {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt: taken from the prefix cache, not computed
  int64_t generated_tokens = 0;
  double queue_seconds = 0;    // submitted -> first step begun
  double prefill_seconds = 0;  // first step begun -> first token
  double decode_seconds = 0;   // first token -> last token
};

}  // namespace tq

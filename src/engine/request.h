// GenerateRequest: what a caller wants, in ids. The engine knows no text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/prefix_key.h"
#include "sampling/sampler.h"

namespace tq {

struct GenerateRequest {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  int64_t max_tokens = 512;       // -1: until the context is full
  int64_t min_tokens = 0;         // end and stop ids cannot come before this many tokens
  std::vector<int32_t> end_ids;   // end of turn: not part of the answer
  std::vector<int32_t> stop_ids;  // the caller's: likewise. Ids beyond the vocabulary never come
  int priority = 0;               // the higher is served first; may push a lower one back
  // What ids of the prompt stand for beyond themselves (images): part of the prefix cache's key.
  std::vector<TokenExtra> extras;

  // Errors: kInvalidArgument naming the field, what was expected and found.
  Status Validate(int64_t vocab_size, int64_t max_context) const;
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled, kError };
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

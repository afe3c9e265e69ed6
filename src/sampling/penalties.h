// What the tokens so far take from the logits of those that repeat them. Thread: one caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/params.h"

namespace tq {

// Reused by every call and every request; holds nothing between two calls.
class PenaltyScratch {
 public:
  static constexpr size_t kBytesPerId = 4;
  void Reserve(size_t vocab_size, size_t longest_history);

  // One number for each id: all 0 between two calls.
  std::vector<int32_t> by_id;
  std::vector<int32_t> matches;  // for each place of a history
};

// The breakers of a request: single ids, and the longer sequences.
struct DryBreakers {
  explicit DryBreakers(const std::vector<std::vector<int32_t>>& sequences);
  std::vector<int32_t> singles;
  std::vector<std::vector<int32_t>> sequences;
};

// A positive logit of each distinct id of the last repetition_context ids is divided by
// repetition_penalty, any other multiplied.
void ApplyRepetition(const SamplingParams& params, std::span<const int32_t> history,
                     std::span<float> logits, PenaltyScratch& scratch);

// logit - (count * frequency_penalty + presence_penalty) for each id that came count > 0 times in
// `history` (already cut to what the two see).
void ApplyPresence(const SamplingParams& params, std::span<const int32_t> history,
                   std::span<float> logits, PenaltyScratch& scratch);

// DRY: an id that would continue a repeat of the last n ids, n at least dry_allowed_length, loses
// dry_multiplier * dry_base ^ (n - dry_allowed_length), n the longest such repeat. A repeat does
// not reach over a breaker; a breaker of one id loses nothing.
void ApplyDry(const SamplingParams& params, const DryBreakers& breakers,
              std::span<const int32_t> history, std::span<float> logits, PenaltyScratch& scratch);

}  // namespace tq

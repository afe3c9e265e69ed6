// Log probabilities of a token and of the best alternatives: of the model itself, that is, the log
// softmax of its logits before any bias, penalty, filter or temperature.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sampling/candidates.h"

namespace tq {

struct TopLogprob {
  int32_t id = 0;
  float logprob = 0.0f;
  bool operator==(const TopLogprob&) const = default;
};

struct TokenLogprobs {
  static constexpr int kMaxTop = 20;
  static constexpr float kLeast = -9999.0f;  // in place of -inf

  float logprob = 0.0f;
  int32_t num_top = 0;
  // The first num_top, by falling logit, then rising id.
  std::array<TopLogprob, kMaxTop> top = {};
  bool operator==(const TokenLogprobs&) const = default;
};

// Of `id` and the num_top best ids (fewer when the vocabulary has fewer). The sum of the softmax is
// of integer weights (weights.h), its logarithm f64, the result rounded to f32.
// Requires: id < logits.size(), num_top <= kMaxTop. `scratch` is overwritten.
TokenLogprobs ComputeLogprobs(std::span<const float> logits, int32_t id, int num_top,
                              Candidates& scratch);

}  // namespace tq

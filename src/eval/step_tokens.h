// Steps whose logits are all kept.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tq {

// Tokens per step: `wanted`, or (0) what keeps the f32 logits of a step below 256 MiB.
inline int64_t StepTokens(int64_t wanted, int64_t num_tokens, int64_t vocab_size) {
  constexpr int64_t kLogitsBytes = int64_t{256} << 20;
  if (wanted > 0) return wanted;
  const int64_t fits = kLogitsBytes / (vocab_size * static_cast<int64_t>(sizeof(float)));
  return std::clamp<int64_t>(fits, 1, std::max<int64_t>(num_tokens, 1));
}

}  // namespace tq

// What a step gives beside logits: the hidden states of tokens, behind the final norm.
#pragma once

#include <cstdint>
#include <span>

namespace tq {

// rows [tokens.size(), hidden_size], as the head of the model sees them.
struct HiddenRows {
  std::span<const int32_t> tokens;  // of the step, ascending
  float* rows = nullptr;
};

}  // namespace tq

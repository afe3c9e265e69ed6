// SamplingParams: what a request wants of the sampler. What each one means is in sampler.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tq {

// What narrows the candidates, and the temperature.
enum class SamplerStep : uint8_t { kTopK, kTypicalP, kTopP, kMinP, kXtc, kTemperature };
std::string_view SamplerStepName(SamplerStep step);  // "top_k", "typical_p", ...

inline constexpr std::array<SamplerStep, 6> kDefaultOrder = {
    SamplerStep::kTopK, SamplerStep::kTypicalP, SamplerStep::kTopP,
    SamplerStep::kMinP, SamplerStep::kXtc,      SamplerStep::kTemperature};

struct SamplingParams {
  float temperature = 0.0f;      // below 1e-5: greedy
  float top_p = 1.0f;            // (0, 1]; 1: off
  int top_k = 0;                 // 0: off
  float min_p = 0.0f;            // [0, 1]; 0: off
  float typical_p = 1.0f;        // (0, 1]; 1: off
  float xtc_probability = 0.0f;  // [0, 1]: how often it acts; 0: off
  float xtc_threshold = 0.1f;    // [0, 1]; above 0.5 it never acts

  float repetition_penalty = 1.0f;  // 1: off
  int repetition_context = 256;     // last tokens (prompt included) that it sees
  float presence_penalty = 0.0f;    // 0: off
  float frequency_penalty = 0.0f;   // 0: off
  int penalty_context = -1;         // last tokens that these two see; -1: all
  bool penalize_prompt = false;     // they see the prompt too, not the answer alone

  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;       // >= 1
  int dry_allowed_length = 2;   // repeats up to this length cost nothing; >= 1
  int dry_context = -1;         // last tokens (prompt included) that it sees; -1: all
  // No repeat reaches over one of these.
  std::vector<std::vector<int32_t>> dry_breakers;

  std::vector<std::pair<int32_t, float>> logit_bias;  // (id, added to its logit)
  // The last id of a sequence may not come after the others of it.
  std::vector<std::vector<int32_t>> bad_words;
  // Steps left out are off; without kTemperature it is 1. Empty: kDefaultOrder.
  std::vector<SamplerStep> order;
  uint64_t seed = 0;

  // Errors: kInvalidArgument naming the field, the range and the value.
  Status Validate(int64_t vocab_size) const;
};

// "top_k;temperature", also with commas. Errors: kInvalidArgument naming the piece.
Result<std::vector<SamplerStep>> ParseSamplerOrder(std::string_view text);

}  // namespace tq

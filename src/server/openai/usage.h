// What the two OpenAI chat APIs have in common: usage.
#pragma once

#include <cstddef>
#include <span>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "server/generation.h"

namespace tq::server {

// Of all answers; a prompt counts once, however many answers it has.
inline OrderedJson OpenAiUsage(std::span<const AnswerEnd> ends, size_t answers_per_prompt) {
  int64_t prompt = 0;
  int64_t cached = 0;
  int64_t generated = 0;
  int64_t reasoning = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (i % answers_per_prompt == 0) {
      prompt += ends[i].stats.prompt_tokens;
      cached += ends[i].stats.cached_tokens;
    }
    generated += ends[i].stats.generated_tokens;
    reasoning += ends[i].reasoning_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", reasoning}}}};
}

}  // namespace tq::server

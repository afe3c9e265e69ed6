// What the two OpenAI chat APIs have in common: usage and reasons to end.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "server/generation.h"

namespace tq::server {

inline OrderedJson OpenAiUsage(const AnswerEnd& end) {
  const GenerateStats& stats = end.stats;
  return {{"prompt_tokens", stats.prompt_tokens},
          {"completion_tokens", stats.generated_tokens},
          {"total_tokens", stats.prompt_tokens + stats.generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", stats.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", end.reasoning_tokens}}}};
}

inline std::string_view OpenAiFinish(const AnswerEnd& end) {
  switch (end.reason) {
    case AnswerEnd::Reason::kLength:
      return "length";
    case AnswerEnd::Reason::kToolCalls:
      return "tool_calls";
    default:
      return "stop";
  }
}

}  // namespace tq::server

// How much a model may think before it answers, in the words of several APIs.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "chat/prompt.h"
#include "chat/request_json.h"

namespace tq::server {

// Tokens of thoughts, -1: no limit. Of thinking.budget_tokens, reasoning.max_tokens,
// thinking_budget and thinking_budget_tokens; without them of the effort in `prompt`: minimal 512,
// low 2048, medium 8192, high 32768, xhigh 65536, max 131072. A budget of 0 tells the model not to
// think (in `prompt`), and reasoning.enabled whether to. Errors: kInvalidArgument; two budgets.
Result<int64_t> ReadThoughtLimit(const RequestNode& body, ChatPromptOptions& prompt);

}  // namespace tq::server

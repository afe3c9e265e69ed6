// A conversation -> the ids of its prompt, with the answers in it as they were generated.
#pragma once

#include <vector>

#include "chat/messages.h"
#include "chat/prompt.h"
#include "server/call.h"

namespace tq::server {

struct PromptIds {
  std::vector<int32_t> ids;
  RenderedPrompt rendered;
};

// Changes the messages that are stored answers (TurnStore). Errors: kInvalidArgument: no chat
// template, what the template raises, images.
Result<PromptIds> MakePromptIds(const Call& call, ChatInput& input,
                                const ChatPromptOptions& options);

}  // namespace tq::server

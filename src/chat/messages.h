// Messages: the conversation that a chat template gets, as JSON whose keys keep their order.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/status.h"

namespace tq {

struct ChatInput {
  OrderedJson messages = OrderedJson::array();
  OrderedJson tools;  // null: none
};

// {"role": role, "content": content}
OrderedJson MakeMessage(std::string_view role, std::string_view content);

// A JSON list of messages, or {"messages": [...], "tools": [...]}. `where` names it in messages.
// Errors: kCorrupt (no JSON), kInvalidArgument naming the message, expected and found.
Result<ChatInput> ParseChatInput(std::string_view text, std::string_view where);

}  // namespace tq

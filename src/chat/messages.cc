#include "chat/messages.h"

namespace tq {

std::string_view RoleName(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "system";
    case ChatRole::kDeveloper:
      return "developer";
    case ChatRole::kUser:
      return "user";
    case ChatRole::kAssistant:
      return "assistant";
    case ChatRole::kTool:
      return "tool";
  }
  return "";
}

std::string ChatMessage::Text() const {
  std::string text;
  for (const ContentPart& part : content) text += part.text;
  return text;
}

bool ChatMessage::HasImages() const {
  for (const ContentPart& part : content) {
    if (part.kind == ContentPart::Kind::kImage) return true;
  }
  return false;
}

ChatMessage MakeMessage(ChatRole role, std::string_view content) {
  ChatMessage message;
  message.role = role;
  if (!content.empty()) {
    message.content.push_back({ContentPart::Kind::kText, std::string(content), {}});
  }
  return message;
}

ChatMessage MakeMessage(std::string_view role, std::string_view content) {
  if (role == "system") return MakeMessage(ChatRole::kSystem, content);
  if (role == "assistant") return MakeMessage(ChatRole::kAssistant, content);
  return MakeMessage(ChatRole::kUser, content);
}

std::string CustomArguments(std::string_view text) {
  const OrderedJson arguments = {{"input", std::string(text)}};
  return arguments.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string TurnKey(const ChatMessage& message, bool with_reasoning) {
  OrderedJson calls = OrderedJson::array();
  for (const ToolCall& call : message.tool_calls) {
    // Sorted keys and no spaces: clients parse arguments and write them again.
    const Result<Json> arguments = ParseJson(call.arguments, "arguments");
    calls.push_back({call.name, arguments.ok() ? arguments->dump() : call.arguments});
  }
  const OrderedJson key = {message.Text(), with_reasoning ? message.reasoning : "", calls};
  return key.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace tq

#include "chat/messages.h"
#include "base/json.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tq {
namespace {

Status CheckMessages(const OrderedJson& messages, std::string_view where) {
  if (!messages.is_array() || messages.empty()) {
    return InvalidArgument(
        fmt::format("{}: expected a list of messages with at least one, found {}", where,
                    messages.is_array() ? "none" : messages.type_name()));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const OrderedJson& message = messages[i];
    if (!message.is_object()) {
      return InvalidArgument(fmt::format("{}: message {}: expected an object, found {}", where, i,
                                         message.type_name()));
    }
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) {
      return InvalidArgument(fmt::format("{}: message {}: expected a text \"role\", found {}",
                                         where, i,
                                         role == message.end() ? "none" : role->type_name()));
    }
  }
  return Status::Ok();
}

}  // namespace

OrderedJson MakeMessage(std::string_view role, std::string_view content) {
  return {{"role", std::string(role)}, {"content", std::string(content)}};
}

Result<ChatInput> ParseChatInput(std::string_view text, std::string_view where) {
  TQ_ASSIGN_OR_RETURN(OrderedJson document, ParseOrderedJson(text, where));
  ChatInput input;
  if (document.is_object()) {
    const auto tools = document.find("tools");
    if (tools != document.end()) input.tools = *tools;
    const auto messages = document.find("messages");
    if (messages == document.end()) {
      return InvalidArgument(
          fmt::format("{}: expected the key \"messages\", found an object without", where));
    }
    input.messages = *messages;
  } else {
    input.messages = std::move(document);
  }
  TQ_RETURN_IF_ERROR(CheckMessages(input.messages, where));
  if (!input.tools.is_null() && !input.tools.is_array()) {
    return InvalidArgument(
        fmt::format("{}: tools: expected a list, found {}", where, input.tools.type_name()));
  }
  return input;
}

}  // namespace tq

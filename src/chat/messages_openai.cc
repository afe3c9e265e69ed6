// /v1/chat/completions.
#include <utility>

#include <fmt/format.h>

#include "chat/parse_messages.h"

namespace tq {
namespace {

using request::AddText;

Status ReadImageUrl(const RequestNode& part, ChatMessage& message) {
  const RequestNode image = part["image_url"];
  const RequestNode url = image.IsObject() ? image["url"] : image;
  TQ_ASSIGN_OR_RETURN(std::string text, url.Text());
  TQ_ASSIGN_OR_RETURN(std::string detail, image["detail"].OptionalText());
  message.content.push_back(
      {ContentPart::Kind::kImage, "", request::ImageOfUrl(std::move(text), std::move(detail))});
  return Status::Ok();
}

Status ReadPart(const RequestNode& part, ChatMessage& message) {
  if (part.IsText()) {
    AddText(message, part.text());
    return Status::Ok();
  }
  TQ_RETURN_IF_ERROR(part.CheckObject());
  const RequestNode type = part["type"];
  const std::string name = type.IsText() ? type.text() : "";
  if (name == "text" || name == "refusal") {
    TQ_ASSIGN_OR_RETURN(std::string text, part[name].Text());
    AddText(message, std::move(text));
    return Status::Ok();
  }
  if (name == "image_url") return ReadImageUrl(part, message);
  return type.Expected("\"text\" or \"image_url\"");
}

Status ReadContent(const RequestNode& content, ChatMessage& message) {
  if (content.IsText()) {
    AddText(message, content.text());
    return Status::Ok();
  }
  if (!content.IsList()) {
    // What calls tools need say nothing, and a tool may have nothing to say.
    const bool may_miss = message.role == ChatRole::kAssistant || message.role == ChatRole::kTool;
    if (content.IsNull() && may_miss) return Status::Ok();
    return content.Expected("a text or a list of parts");
  }
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> parts, content.List());
  for (const RequestNode& part : parts) TQ_RETURN_IF_ERROR(ReadPart(part, message));
  return Status::Ok();
}

Result<ToolCall> ReadCall(const RequestNode& node) {
  TQ_RETURN_IF_ERROR(node.CheckObject());
  const RequestNode type = node["type"];
  TQ_ASSIGN_OR_RETURN(const std::string kind, type.OptionalText());
  ToolCall call;
  TQ_ASSIGN_OR_RETURN(call.id, node["id"].OptionalText());
  if (kind == "custom") {
    TQ_ASSIGN_OR_RETURN(call.name, node["custom"]["name"].Text());
    TQ_ASSIGN_OR_RETURN(const std::string input, node["custom"]["input"].OptionalText());
    call.arguments = CustomArguments(input);
    return call;
  }
  if (!kind.empty() && kind != "function") return type.Expected("\"function\" or \"custom\"");
  const RequestNode function = node["function"];
  TQ_RETURN_IF_ERROR(function.CheckObject());
  TQ_ASSIGN_OR_RETURN(call.name, function["name"].Text());
  TQ_ASSIGN_OR_RETURN(call.arguments, request::CallArguments(function["arguments"]));
  return call;
}

Status ReadAssistant(const RequestNode& node, ChatMessage& message) {
  // Two names of one thing, by server.
  TQ_ASSIGN_OR_RETURN(message.reasoning, node["reasoning_content"].OptionalText());
  if (message.reasoning.empty() && node["reasoning"].IsText()) {
    message.reasoning = node["reasoning"].text();
  }
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> calls, node["tool_calls"].List());
  for (const RequestNode& call : calls) {
    TQ_ASSIGN_OR_RETURN(ToolCall read, ReadCall(call));
    message.tool_calls.push_back(std::move(read));
  }
  const RequestNode old_call = node["function_call"];
  if (!old_call.IsNull()) {
    ToolCall call;
    TQ_ASSIGN_OR_RETURN(call.name, old_call["name"].Text());
    TQ_ASSIGN_OR_RETURN(call.arguments, request::CallArguments(old_call["arguments"]));
    message.tool_calls.push_back(std::move(call));
  }
  return Status::Ok();
}

Result<ChatRole> ReadRole(const RequestNode& role) {
  const std::string name = role.IsText() ? role.text() : "";
  if (name == "function") return ChatRole::kTool;  // the name before 2024
  for (const ChatRole known : {ChatRole::kSystem, ChatRole::kDeveloper, ChatRole::kUser,
                               ChatRole::kAssistant, ChatRole::kTool}) {
    if (name == RoleName(known)) return known;
  }
  return role.Expected("\"system\", \"developer\", \"user\", \"assistant\" or \"tool\"");
}

Result<ChatMessage> ReadMessage(const RequestNode& node) {
  TQ_RETURN_IF_ERROR(node.CheckObject());
  ChatMessage message;
  TQ_ASSIGN_OR_RETURN(message.role, ReadRole(node["role"]));
  TQ_RETURN_IF_ERROR(ReadContent(node["content"], message));
  TQ_ASSIGN_OR_RETURN(message.name, node["name"].OptionalText());
  if (message.role == ChatRole::kAssistant) TQ_RETURN_IF_ERROR(ReadAssistant(node, message));
  if (message.role == ChatRole::kTool) {
    TQ_ASSIGN_OR_RETURN(message.tool_call_id, node["tool_call_id"].OptionalText());
  }
  return message;
}

Status ReadTool(const RequestNode& node, ChatInput& input) {
  TQ_RETURN_IF_ERROR(node.CheckObject());
  const RequestNode type = node["type"];
  ToolSpec tool;
  if (type.IsText() && type.text() == "function") {
    TQ_ASSIGN_OR_RETURN(tool.function, request::CompleteFunction(node["function"]));
  } else if (type.IsText() && type.text() == "custom") {
    const RequestNode custom = node["custom"];
    TQ_ASSIGN_OR_RETURN(const std::string name, custom["name"].Text());
    TQ_ASSIGN_OR_RETURN(const std::string description, custom["description"].OptionalText());
    const RequestNode grammar = custom["format"]["grammar"];
    tool.is_custom = true;
    tool.function = request::CustomFunction(name, description, grammar.value());
  } else if (type.IsText()) {
    input.notes.push_back(fmt::format("{}: left out a tool of type {}", node.path(),
                                      type.value().dump(-1, ' ', true)));
    return Status::Ok();
  } else {
    return type.Expected("\"function\"");
  }
  tool.name = tool.function["name"].get<std::string>();
  input.tools.push_back(std::move(tool));
  return Status::Ok();
}

}  // namespace

Result<ChatInput> ParseOpenAiChat(const OrderedJson& body) {
  const RequestNode root(body, body.is_array() ? "messages" : "");
  if (!root.IsList() && !root.IsObject()) return root.Expected("an object or a list of messages");
  const RequestNode list = root.IsList() ? root : root["messages"];
  if (!list.IsList() || list.value().empty()) return list.Expected("a list of messages");
  ChatInput input;
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> tools, root["tools"].List());
  for (const RequestNode& tool : tools) TQ_RETURN_IF_ERROR(ReadTool(tool, input));
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> messages, list.List());
  for (const RequestNode& node : messages) {
    TQ_ASSIGN_OR_RETURN(ChatMessage message, ReadMessage(node));
    input.messages.push_back(std::move(message));
  }
  return request::Finish(std::move(input));
}

}  // namespace tq

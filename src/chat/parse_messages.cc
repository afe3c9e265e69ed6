#include "chat/parse_messages.h"

#include <utility>

#include <fmt/format.h>

#include "chat/tool_history.h"

namespace tq {
namespace {

bool IsAnthropicBlock(const OrderedJson& block) {
  if (!block.is_object()) return false;
  const auto type = block.find("type");
  if (type == block.end() || !type->is_string()) return false;
  const auto& name = type->get_ref<const std::string&>();
  return name == "tool_use" || name == "tool_result" || name == "thinking" ||
         name == "redacted_thinking" || (name == "image" && block.contains("source"));
}

bool HasAnthropicBlock(const OrderedJson& messages) {
  if (!messages.is_array()) return false;
  for (const OrderedJson& message : messages) {
    if (!message.is_object()) continue;
    const auto content = message.find("content");
    if (content == message.end() || !content->is_array()) continue;
    for (const OrderedJson& block : *content) {
      if (IsAnthropicBlock(block)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<ChatApi> ParseApiName(std::string_view name) {
  if (name == "openai") return ChatApi::kOpenAi;
  if (name == "anthropic") return ChatApi::kAnthropic;
  if (name == "responses") return ChatApi::kResponses;
  return std::nullopt;
}

ChatApi DetectChatApi(const OrderedJson& body) {
  if (body.is_array()) return HasAnthropicBlock(body) ? ChatApi::kAnthropic : ChatApi::kOpenAi;
  if (!body.is_object()) return ChatApi::kOpenAi;
  if (body.contains("input") && !body.contains("messages")) return ChatApi::kResponses;
  if (body.contains("system")) return ChatApi::kAnthropic;
  const auto tools = body.find("tools");
  if (tools != body.end() && tools->is_array()) {
    for (const OrderedJson& tool : *tools) {
      if (tool.is_object() && tool.contains("input_schema")) return ChatApi::kAnthropic;
    }
  }
  const auto messages = body.find("messages");
  const bool has_block = messages != body.end() && HasAnthropicBlock(*messages);
  return has_block ? ChatApi::kAnthropic : ChatApi::kOpenAi;
}

Result<ChatInput> ParseChatInput(std::string_view text, std::string_view where,
                                 std::optional<ChatApi> api) {
  TQ_ASSIGN_OR_RETURN(const OrderedJson body, ParseOrderedJson(text, where));
  const auto parse = [&]() -> Result<ChatInput> {
    switch (api.value_or(DetectChatApi(body))) {
      case ChatApi::kAnthropic:
        return ParseAnthropicChat(body);
      case ChatApi::kResponses:
        return ParseResponsesChat(body);
      default:
        return ParseOpenAiChat(body);
    }
  };
  Result<ChatInput> input = parse();
  if (!input.ok()) return input.status().WithContext(where);
  return input;
}

namespace request {

void AddText(ChatMessage& message, std::string text) {
  if (text.empty()) return;
  message.content.push_back({ContentPart::Kind::kText, std::move(text), {}});
}

ImageRef ImageOfUrl(std::string url, std::string detail) {
  constexpr std::string_view kScheme = "data:";
  constexpr std::string_view kBase64 = ";base64,";
  ImageRef image;
  image.detail = std::move(detail);
  const size_t marker = url.find(kBase64);
  if (url.starts_with(kScheme) && marker != std::string::npos) {
    image.media_type = url.substr(kScheme.size(), marker - kScheme.size());
    image.data = url.substr(marker + kBase64.size());
  } else {
    image.url = std::move(url);
  }
  return image;
}

Result<OrderedJson> CompleteFunction(const RequestNode& function) {
  TQ_RETURN_IF_ERROR(function.CheckObject());
  if (!function["name"].IsText() || function["name"].text().empty()) {
    return function["name"].Expected("the name of a function");
  }
  TQ_RETURN_IF_ERROR(function["description"].OptionalText().status());
  const RequestNode parameters = function["parameters"];
  if (!parameters.IsNull()) TQ_RETURN_IF_ERROR(parameters.CheckObject());
  OrderedJson result = function.value();
  if (function["description"].IsNull()) result["description"] = "";
  if (parameters.IsNull()) {
    result["parameters"] = {{"type", "object"}, {"properties", OrderedJson::object()}};
  }
  return result;
}

OrderedJson CustomFunction(std::string_view name, std::string_view description,
                           const OrderedJson& format) {
  OrderedJson input = {{"type", "string"}};
  if (format.is_object()) {
    const auto definition = format.find("definition");
    if (definition != format.end() && definition->is_string()) {
      input["description"] = "Free text of this grammar:\n" + definition->get<std::string>();
    }
  }
  return {{"name", std::string(name)},
          {"description", std::string(description)},
          {"parameters",
           {{"type", "object"},
            {"properties", {{"input", std::move(input)}}},
            {"required", OrderedJson::array({"input"})}}}};
}

Result<std::string> CallArguments(const RequestNode& arguments) {
  if (arguments.IsNull()) return std::string("{}");
  if (arguments.IsObject()) return arguments.value().dump();
  if (!arguments.IsText()) return arguments.Expected("an object or its JSON text");
  std::string text = arguments.text();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return std::string("{}");
  const Result<OrderedJson> parsed = ParseOrderedJson(text, "arguments");
  if (parsed.ok() && parsed->is_string()) {
    const Result<OrderedJson> inner =
        ParseOrderedJson(parsed->get_ref<const std::string&>(), "arguments");
    if (inner.ok() && inner->is_object()) return parsed->get<std::string>();
  }
  return text;
}

Result<ChatInput> Finish(ChatInput input) {
  RepairToolHistory(input);
  return input;
}

}  // namespace request
}  // namespace tq

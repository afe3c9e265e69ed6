#include "chat/template_messages.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tq {
namespace {

constexpr std::string_view kBlank = "\n\n";

// Appends what `more` says.
void Join(ChatMessage& message, ChatMessage more) {
  if (!message.content.empty() && !more.content.empty()) {
    message.content.push_back({ContentPart::Kind::kText, std::string(kBlank), {}});
  }
  for (ContentPart& part : more.content) message.content.push_back(std::move(part));
  if (!message.reasoning.empty() && !more.reasoning.empty()) message.reasoning += kBlank;
  message.reasoning += more.reasoning;
  for (ToolCall& call : more.tool_calls) message.tool_calls.push_back(std::move(call));
  message.generated.reset();
}

void FitSystem(std::vector<ChatMessage>& messages, const TemplateTraits& traits) {
  bool in_front = true;
  for (ChatMessage& message : messages) {
    if (message.role == ChatRole::kDeveloper && !traits.takes_developer) {
      message.role = ChatRole::kSystem;
    }
    const bool is_system = message.role == ChatRole::kSystem;
    in_front = in_front && (is_system || message.role == ChatRole::kDeveloper);
    if (is_system && !in_front && !traits.takes_late_system) message.role = ChatRole::kUser;
  }
  size_t run = 0;
  while (run < messages.size() && messages[run].role == ChatRole::kSystem) ++run;
  if (run == 0) return;
  if (run > 1 && !traits.takes_system_run) {
    for (size_t i = 1; i < run; ++i) Join(messages[0], std::move(messages[i]));
    messages.erase(messages.begin() + 1, messages.begin() + static_cast<ptrdiff_t>(run));
  }
  if (traits.takes_system) return;
  messages[0].role = ChatRole::kUser;
  if (messages.size() > 1 && messages[1].role == ChatRole::kUser) {
    Join(messages[0], std::move(messages[1]));
    messages.erase(messages.begin() + 1);
  }
}

// Images of tool results go into a user message of their own behind the results.
void MoveToolImages(std::vector<ChatMessage>& messages) {
  std::vector<ChatMessage> out;
  std::vector<ContentPart> images;
  const auto flush = [&] {
    if (images.empty()) return;
    ChatMessage message = MakeMessage(ChatRole::kUser, "Images of the tool result:\n");
    for (ContentPart& image : images) message.content.push_back(std::move(image));
    images.clear();
    out.push_back(std::move(message));
  };
  for (ChatMessage& message : messages) {
    if (message.role != ChatRole::kTool) {
      flush();
    } else if (message.HasImages()) {
      std::vector<ContentPart> parts = std::move(message.content);
      message.content.clear();
      for (ContentPart& part : parts) {
        const bool is_image = part.kind == ContentPart::Kind::kImage;
        (is_image ? images : message.content).push_back(std::move(part));
      }
    }
    out.push_back(std::move(message));
  }
  flush();
  messages = std::move(out);
}

bool JoinsRun(const ChatMessage& last, const ChatMessage& next, const TemplateTraits& traits) {
  if (next.role == ChatRole::kUser) {
    return (last.role == ChatRole::kUser && !traits.takes_user_run) ||
           (last.role == ChatRole::kTool && !traits.takes_user_after_tool);
  }
  return next.role == ChatRole::kAssistant && last.role == ChatRole::kAssistant &&
         !traits.takes_assistant_run;
}

// Nine letters and digits that differ for ids that differ (but for chance).
std::string ShortId(std::string_view id) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  bool is_short = id.size() == 9;
  uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : id) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    const bool is_plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    is_short = is_short && is_plain;
  }
  if (is_short) return std::string(id);
  std::string text;
  for (int i = 0; i < 9; ++i, hash /= kDigits.size()) text += kDigits[hash % kDigits.size()];
  return text;
}

OrderedJson ArgumentsJson(const std::string& text, const TemplateTraits& traits) {
  if (!traits.takes_object_arguments) return text;
  Result<OrderedJson> parsed = ParseOrderedJson(text, "arguments");
  if (parsed.ok() && parsed->is_object()) return std::move(parsed).value();
  if (traits.takes_text_arguments) return text;
  return {{"input", text}};
}

OrderedJson CallsJson(const ChatMessage& message, const TemplateTraits& traits) {
  OrderedJson calls = OrderedJson::array();
  for (const ToolCall& call : message.tool_calls) {
    OrderedJson function = {{"name", call.name}};
    function["arguments"] = ArgumentsJson(call.arguments, traits);
    OrderedJson entry = {{"id", traits.takes_long_call_ids ? call.id : ShortId(call.id)},
                         {"type", "function"}};
    entry["function"] = std::move(function);
    calls.push_back(std::move(entry));
  }
  return calls;
}

OrderedJson ContentJson(const ChatMessage& message) {
  if (!message.HasImages()) return message.Text();
  OrderedJson parts = OrderedJson::array();
  for (const ContentPart& part : message.content) {
    if (part.kind == ContentPart::Kind::kImage) {
      parts.push_back({{"type", "image"}});
    } else {
      parts.push_back({{"type", "text"}, {"text", part.text}});
    }
  }
  return parts;
}

}  // namespace

Result<std::vector<ChatMessage>> FitMessages(std::vector<ChatMessage> messages,
                                             const TemplateTraits& traits) {
  if (!traits.takes_images) {
    for (size_t i = 0; i < messages.size(); ++i) {
      if (!messages[i].HasImages()) continue;
      return InvalidArgument(
          fmt::format("message {} ({}): expected text, found an image: the chat template of this "
                      "model takes none",
                      i, RoleName(messages[i].role)));
    }
  }
  FitSystem(messages, traits);
  if (!traits.takes_tool_images) MoveToolImages(messages);
  std::vector<ChatMessage> out;
  for (ChatMessage& message : messages) {
    if (!out.empty() && JoinsRun(out.back(), message, traits)) {
      Join(out.back(), std::move(message));
    } else {
      out.push_back(std::move(message));
    }
  }
  return out;
}

OrderedJson TemplateMessages(std::span<const ChatMessage> messages, const TemplateTraits& traits) {
  OrderedJson list = OrderedJson::array();
  std::map<std::string, std::string> functions;  // by call id
  for (const ChatMessage& message : messages) {
    OrderedJson json = {{"role", RoleName(message.role)}};
    json["content"] = ContentJson(message);
    if (!message.name.empty()) json["name"] = message.name;
    std::string reasoning = traits.reasoning_key.empty() ? "" : message.reasoning;
    if (!message.tool_calls.empty()) {
      const std::string text = message.Text();
      if (!reasoning.empty() && !text.empty() && !traits.takes_thought_text_call) {
        reasoning += std::string(kBlank) + text;
        json["content"] = "";
      }
      if (text.empty() && traits.wants_null_content) json["content"] = nullptr;
      for (const ToolCall& call : message.tool_calls) functions[call.id] = call.name;
    }
    if (!reasoning.empty()) json[traits.reasoning_key] = std::move(reasoning);
    if (!message.tool_calls.empty()) json["tool_calls"] = CallsJson(message, traits);
    if (message.role == ChatRole::kTool) {
      const std::string& id = message.tool_call_id;
      json["tool_call_id"] = traits.takes_long_call_ids ? id : ShortId(id);
      if (message.name.empty() && traits.wants_tool_name) json["name"] = functions[id];
    }
    list.push_back(std::move(json));
  }
  return list;
}

OrderedJson TemplateTools(std::span<const ToolSpec> tools) {
  OrderedJson list;
  for (const ToolSpec& tool : tools) {
    if (tool.is_deferred) continue;
    list.push_back({{"type", "function"}, {"function", tool.function}});
  }
  return list;
}

}  // namespace tq

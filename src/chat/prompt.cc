#include "chat/prompt.h"
#include "base/json.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tq {
namespace {

constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

struct TemplateTexts {
  std::string chat;
  std::string tool_use;
};

Result<OrderedJson> ParseObject(const std::string& text, std::string_view where) {
  if (text.empty()) return OrderedJson::object();
  TQ_ASSIGN_OR_RETURN(OrderedJson document, ParseOrderedJson(text, where));
  if (!document.is_object()) {
    return Corrupt(fmt::format("{}: expected an object, found {}", where, document.type_name()));
  }
  return document;
}

Status ReadNamedTemplates(const OrderedJson& list, std::string_view where, TemplateTexts& texts) {
  for (const OrderedJson& entry : list) {
    const bool named = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                       entry.contains("template") && entry["template"].is_string();
    if (!named) {
      return Corrupt(
          fmt::format("{}: chat_template: expected entries with a text \"name\" and \"template\", "
                      "found {}",
                      where, entry.type_name()));
    }
    const std::string name = entry["name"].get<std::string>();
    if (name == "default") texts.chat = entry["template"].get<std::string>();
    if (name == "tool_use") texts.tool_use = entry["template"].get<std::string>();
  }
  if (texts.chat.empty()) {
    return Unsupported(
        fmt::format("{}: chat_template: expected one named \"default\", found {} of "
                    "other names",
                    where, list.size()));
  }
  return Status::Ok();
}

// Leaves `texts` empty when the document has no template.
Status ReadTemplate(const OrderedJson& document, std::string_view where, TemplateTexts& texts) {
  const auto found = document.find("chat_template");
  if (found == document.end() || found->is_null()) return Status::Ok();
  if (found->is_array()) return ReadNamedTemplates(*found, where, texts);
  if (!found->is_string()) {
    return Corrupt(fmt::format("{}: chat_template: expected a text or a list, found {}", where,
                               found->type_name()));
  }
  texts.chat = found->get<std::string>();
  return Status::Ok();
}

OrderedJson ReadSpecialTokens(const OrderedJson& config, const OrderedJson& map) {
  OrderedJson tokens = OrderedJson::object();
  for (const char* key : kSpecialTokens) {
    std::string text = SpecialTokenText(config, key);
    if (text.empty() && !config.contains(key)) text = SpecialTokenText(map, key);
    if (!text.empty()) tokens[key] = text;
  }
  return tokens;
}

}  // namespace

std::string SpecialTokenText(const OrderedJson& config, std::string_view key) {
  if (!config.is_object()) return "";
  const auto found = config.find(std::string(key));
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return "";
  const auto content = found->find("content");
  return content != found->end() && content->is_string() ? content->get<std::string>() : "";
}

Result<std::optional<ChatPrompt>> ChatPrompt::Load(const ChatDocuments& documents) {
  TQ_ASSIGN_OR_RETURN(const OrderedJson config,
                      ParseObject(documents.tokenizer_config, "tokenizer_config.json"));
  TQ_ASSIGN_OR_RETURN(const OrderedJson map,
                      ParseObject(documents.special_tokens_map, "special_tokens_map.json"));
  TemplateTexts texts;
  texts.chat = documents.chat_template_jinja;
  if (texts.chat.empty()) {
    TQ_RETURN_IF_ERROR(ReadTemplate(config, "tokenizer_config.json", texts));
  }
  if (texts.chat.empty()) {
    TQ_ASSIGN_OR_RETURN(const OrderedJson document,
                        ParseObject(documents.chat_template_json, "chat_template.json"));
    TQ_RETURN_IF_ERROR(ReadTemplate(document, "chat_template.json", texts));
  }
  if (texts.chat.empty()) return std::optional<ChatPrompt>();

  Result<ChatTemplate> chat = ChatTemplate::Parse(texts.chat);
  if (!chat.ok()) return chat.status().WithContext("chat template");
  std::optional<ChatTemplate> tool_template;
  if (!texts.tool_use.empty()) {
    Result<ChatTemplate> tool_use = ChatTemplate::Parse(texts.tool_use);
    if (!tool_use.ok()) return tool_use.status().WithContext("chat template \"tool_use\"");
    tool_template = std::move(tool_use).value();
  }
  return std::optional<ChatPrompt>(ChatPrompt(std::move(chat).value(), std::move(tool_template),
                                              ReadSpecialTokens(config, map)));
}

Result<std::string> ChatPrompt::Render(const ChatInput& input,
                                       const ChatPromptOptions& options) const {
  OrderedJson variables = special_tokens_;
  variables["messages"] = input.messages;
  variables["tools"] = input.tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = options.add_generation_prompt;
  if (options.enable_thinking) variables["enable_thinking"] = *options.enable_thinking;
  const bool use_tools = tool_template_ && !input.tools.is_null();
  Result<std::string> text = (use_tools ? *tool_template_ : template_).Render(variables);
  if (!text.ok()) return text.status().WithContext("chat template");
  return text;
}

}  // namespace tq

#include "chat/prompt.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/repeat_generated.h"
#include "chat/template_messages.h"

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

Status SetEffort(const ChatTemplate& chat_template, const std::string& effort,
                 OrderedJson& variables, std::vector<std::string>& notes) {
  constexpr std::string_view kLevels[] = {"none", "minimal", "low", "medium",
                                          "high", "xhigh",   "max"};
  const auto* const level = std::find(std::begin(kLevels), std::end(kLevels), effort);
  if (level == std::end(kLevels)) {
    return InvalidArgument(fmt::format(
        "reasoning_effort: expected none, minimal, low, medium, high, xhigh or max, "
        "found {}",
        OrderedJson(effort).dump(-1, ' ', true, OrderedJson::error_handler_t::replace)));
  }
  const bool reads_switch =
      chat_template.ReadsVariable("enable_thinking") || chat_template.ReadsVariable("thinking");
  if (!chat_template.ReadsVariable("reasoning_effort")) {
    if (!reads_switch) {
      notes.push_back("reasoning_effort: the chat template of this model has no such setting");
    }
    return Status::Ok();
  }
  const bool is_common = effort == "low" || effort == "medium" || effort == "high";
  const bool is_known = is_common || chat_template.MentionsKey(effort);
  const std::string nearest = level < std::begin(kLevels) + 3 ? "low" : "high";
  variables["reasoning_effort"] = is_known ? effort : nearest;
  if (!is_known && !(effort == "none" && reads_switch)) {
    notes.push_back(fmt::format("reasoning_effort: {} became {}", effort, nearest));
  }
  return Status::Ok();
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(size), b.begin()).first -
      a.begin());
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

  OrderedJson special_tokens = ReadSpecialTokens(config, map);
  const std::string parser = SpecialTokenText(config, "tool_parser_type");
  Result<Named> chat = ParseNamed(texts.chat, special_tokens, parser);
  if (!chat.ok()) return chat.status().WithContext("chat template");
  std::optional<Named> tool_use;
  if (!texts.tool_use.empty()) {
    Result<Named> named = ParseNamed(texts.tool_use, special_tokens, parser);
    if (!named.ok()) return named.status().WithContext("chat template \"tool_use\"");
    tool_use = std::move(named).value();
  }
  return std::optional<ChatPrompt>(ChatPrompt(std::move(chat).value(), std::move(tool_use),
                                              std::move(special_tokens),
                                              SpecialTexts(documents.special_texts)));
}

Result<ChatPrompt::Named> ChatPrompt::ParseNamed(const std::string& source,
                                                 const OrderedJson& special_tokens,
                                                 const std::string& tool_parser_type) {
  TQ_ASSIGN_OR_RETURN(ChatTemplate chat_template, ChatTemplate::Parse(source));
  TemplateTraits traits = FindTemplateTraits(chat_template, special_tokens);
  return Named{std::move(chat_template), std::move(traits),
               DetectOutputSyntax(source, tool_parser_type)};
}

Result<OrderedJson> ChatPrompt::Variables(const ChatTemplate& chat_template, const ChatInput& input,
                                          const ChatPromptOptions& options,
                                          std::vector<std::string>& notes) const {
  OrderedJson variables = special_tokens_;
  variables["tools"] = TemplateTools(input.tools);
  variables["documents"] = nullptr;
  std::optional<bool> thinks = options.enable_thinking;
  if (!options.reasoning_effort.empty()) {
    TQ_RETURN_IF_ERROR(SetEffort(chat_template, options.reasoning_effort, variables, notes));
    if (!thinks) thinks = options.reasoning_effort != "none";
  }
  if (thinks) {
    variables["enable_thinking"] = *thinks;
    // A name of one family, which others use for something else.
    if (chat_template.ReadsVariable("thinking") &&
        !chat_template.ReadsVariable("enable_thinking")) {
      variables["thinking"] = *thinks;
    }
  }
  if (options.variables.is_object()) {
    for (const auto& [name, value] : options.variables.items()) variables[name] = value;
  }
  return variables;
}

Result<RenderedPrompt> ChatPrompt::RenderPrompt(const ChatInput& input,
                                                const ChatPromptOptions& options) const {
  const Named& named = Choose(!input.tools.empty());
  RenderedPrompt prompt;
  TQ_ASSIGN_OR_RETURN(OrderedJson variables,
                      Variables(named.chat_template, input, options, prompt.notes));
  TQ_ASSIGN_OR_RETURN(const std::vector<ChatMessage> messages,
                      FitMessages(input.messages, named.traits));
  const auto render_json = [&](const OrderedJson& shown, bool add_generation_prompt) {
    variables["messages"] = shown;
    variables["add_generation_prompt"] = add_generation_prompt;
    return named.chat_template.Render(variables);
  };
  const auto render = [&](const std::vector<ChatMessage>& shown, bool add_generation_prompt) {
    return render_json(TemplateMessages(shown, named.traits), add_generation_prompt);
  };
  const OrderedJson template_messages = TemplateMessages(messages, named.traits);
  Result<std::string> text = render_json(template_messages, options.add_generation_prompt);
  if (!text.ok()) return text.status().WithContext("chat template");
  prompt.text = std::move(text).value();
  if (options.add_generation_prompt) {
    const Result<std::string> closed = render(messages, false);
    if (closed.ok()) prompt.opening_bytes = prompt.text.size() - CommonPrefix(prompt.text, *closed);
  }
  const OrderedJson tools = variables["tools"];
  prompt.plain = FindPlainText(
      special_texts_, template_messages, tools, prompt.text,
      [&](const OrderedJson& shown, const OrderedJson& shown_tools) {
        variables["tools"] = shown_tools;
        return render_json(shown, options.add_generation_prompt);
      },
      prompt.notes);
  variables["tools"] = tools;
  RepeatGenerated(messages, options.add_generation_prompt, named.traits.knows_thoughts, render,
                  prompt);
  return prompt;
}

Result<std::string> ChatPrompt::Render(const ChatInput& input,
                                       const ChatPromptOptions& options) const {
  TQ_ASSIGN_OR_RETURN(RenderedPrompt prompt, RenderPrompt(input, options));
  return std::move(prompt.text);
}

GeneratedTurn RenderedPrompt::Turn(std::string generated, int64_t tag) const {
  constexpr size_t kHistoryBytes = 64;
  const size_t end = text.size() - opening_bytes;
  const size_t begin = end > kHistoryBytes ? end - kHistoryBytes : 0;
  GeneratedTurn turn;
  turn.history_end = text.substr(begin, end - begin);
  turn.opening = text.substr(end);
  turn.prompt_hash = HashPrompt(text, kPromptHashStart);
  turn.text = std::move(generated);
  turn.tag = tag;
  return turn;
}

}  // namespace tq

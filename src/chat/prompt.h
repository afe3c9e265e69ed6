// ChatPrompt: a checkpoint's chat template together with what its tokenizer_config.json says about
// special tokens: messages -> the text of a prompt. Immutable after Load; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"
#include "chat/messages.h"

namespace tq {

// Contents of a checkpoint's files; empty ones are absent.
struct ChatDocuments {
  std::string tokenizer_config;     // tokenizer_config.json
  std::string special_tokens_map;   // special_tokens_map.json: tokens that the config does not name
  std::string chat_template_jinja;  // chat_template.jinja
  std::string chat_template_json;   // chat_template.json: {"chat_template": ...}
};

struct ChatPromptOptions {
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;  // unset: the template's own default
};

class ChatPrompt {
 public:
  // The template of chat_template.jinja, else of tokenizer_config.json, else of chat_template.json.
  // In a list of named templates "default" counts, and "tool_use" when there are tools. nullopt:
  // the checkpoint has none. Errors: kCorrupt, kUnsupported.
  static Result<std::optional<ChatPrompt>> Load(const ChatDocuments& documents);

  // Errors: what the template raises (kInvalidArgument), kOutOfMemory when it never ends.
  Result<std::string> Render(const ChatInput& input, const ChatPromptOptions& options) const;

 private:
  ChatPrompt(ChatTemplate chat_template, std::optional<ChatTemplate> tool_template,
             OrderedJson special_tokens)
      : template_(std::move(chat_template)),
        tool_template_(std::move(tool_template)),
        special_tokens_(std::move(special_tokens)) {}

  ChatTemplate template_;
  std::optional<ChatTemplate> tool_template_;
  OrderedJson special_tokens_;  // {"bos_token": "<s>", ...}
};

// "bos_token" ...: its text in tokenizer_config.json, where it is a string or {"content": ...}; ""
// when there is none. config: the parsed file.
std::string SpecialTokenText(const OrderedJson& config, std::string_view key);

}  // namespace tq

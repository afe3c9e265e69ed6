// ChatPrompt: a checkpoint's chat template together with what its tokenizer_config.json says about
// special tokens: messages -> the text of a prompt. Immutable after Load; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/status.h"
#include "base/text_span.h"
#include "chat/chat_template.h"
#include "chat/messages.h"
#include "chat/output/output_syntax.h"
#include "chat/plain_text.h"
#include "chat/template_traits.h"

namespace tq {

// Contents of a checkpoint's files; empty ones are absent.
struct ChatDocuments {
  std::string tokenizer_config;     // tokenizer_config.json
  std::string special_tokens_map;   // special_tokens_map.json: tokens that the config does not name
  std::string chat_template_jinja;  // chat_template.jinja
  std::string chat_template_json;   // chat_template.json: {"chat_template": ...}
  // What the tokenizer reads as special tokens: in messages it stays text.
  std::vector<std::string> special_texts;
};

struct ChatPromptOptions {
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking = std::nullopt;  // unset: the template's own default
  // "none", "minimal", "low", "medium", "high", "xhigh" or "max"; empty: not said. Becomes
  // whichever of reasoning_effort, enable_thinking and thinking the template reads; a level that it
  // does not name becomes "low" or "high".
  std::string reasoning_effort = {};
  OrderedJson variables = OrderedJson::object();  // more of them; they win
};

// A prompt, and what is needed to go on from it.
//
// The next prompt of the same conversation repeats this one byte for byte, when the answer comes
// back as a message with `generated` set: text + GeneratedTurn::text is a prefix of it. Templates
// alone do not give that: they leave out or add empty thoughts, space arguments of calls their own
// way, trim. So the place of each generated turn is found with a marker in its stead, and what was
// generated is put there, behind the opening that it was an answer to.
//
// It cannot hold, and the template's own words stand, where
// - the template leaves out thoughts of old turns on purpose (Qwen3, Kimi, GLM, MiniMax, harmony
// and
//   others do so once a new user message comes; DeepSeek always): the message has reasoning, and
//   the template, which knows of thoughts, does not show it. The prompt then differs from that turn
//   on. So set `reasoning` of the message whenever the generated text had some. Within a round of
//   tool calls most of them keep it, and templates that know nothing of thoughts keep what was
//   generated;
// - the template changes what stood before: tools or system text in the last user message
// (Mistral),
//   documents; the prompt differs from there on;
// - the turn cannot be found: the template needs the calls that the marker displaces and the
//   generated call does not end as the template's does; or messages were joined (FitMessages).
// Each such turn has a note, or `repeated` says so. The prompt is right in all cases; only less of
// a cache fits.
struct RenderedPrompt {
  std::string text;
  size_t opening_bytes = 0;  // at the end of text: what add_generation_prompt added

  // Generated text that is repeated as it was: the ids that were generated can be used for it.
  struct Repeated {
    size_t begin = 0;  // in text
    size_t end = 0;
    int64_t tag = 0;                // GeneratedTurn::tag
    bool continues_prompt = false;  // what stands before is the prompt that was answered
  };
  std::vector<Repeated> repeated;
  // Where messages and tools have text that reads like a special token, sorted:
  // EncodeOptions::plain.
  std::vector<TextSpan> plain;
  std::vector<std::string> notes;  // one line each, for a log

  // To be kept with the answer to this prompt.
  GeneratedTurn Turn(std::string generated, int64_t tag) const;
};

class ChatPrompt {
 public:
  // The template of chat_template.jinja, else of tokenizer_config.json, else of chat_template.json.
  // In a list of named templates "default" counts, and "tool_use" when there are tools. nullopt:
  // the checkpoint has none. Errors: kCorrupt, kUnsupported.
  static Result<std::optional<ChatPrompt>> Load(const ChatDocuments& documents);

  // Errors: what the template raises (kInvalidArgument), kOutOfMemory when it never ends, an
  // unknown reasoning_effort, images that the template does not take.
  Result<RenderedPrompt> RenderPrompt(const ChatInput& input,
                                      const ChatPromptOptions& options) const;
  // Its text.
  Result<std::string> Render(const ChatInput& input, const ChatPromptOptions& options) const;

  // What the template can take; with_tools: that of "tool_use", if there is one.
  const TemplateTraits& traits(bool with_tools) const { return Choose(with_tools).traits; }
  // How it writes calls and thoughts.
  const OutputSyntax& syntax(bool with_tools) const { return Choose(with_tools).syntax; }
  // The special tokens by name, {"bos_token": "<s>", ...}.
  const OrderedJson& special_tokens() const { return special_tokens_; }

 private:
  struct Named {
    ChatTemplate chat_template;
    TemplateTraits traits;
    OutputSyntax syntax;
  };
  ChatPrompt(Named chat, std::optional<Named> tool_use, OrderedJson special_tokens,
             SpecialTexts special_texts)
      : chat_(std::move(chat)),
        tool_use_(std::move(tool_use)),
        special_tokens_(std::move(special_tokens)),
        special_texts_(std::move(special_texts)) {}

  // tool_parser_type: of tokenizer_config.json.
  static Result<Named> ParseNamed(const std::string& source, const OrderedJson& special_tokens,
                                  const std::string& tool_parser_type);
  const Named& Choose(bool with_tools) const {
    return with_tools && tool_use_ ? *tool_use_ : chat_;
  }
  Result<OrderedJson> Variables(const ChatTemplate& chat_template, const ChatInput& input,
                                const ChatPromptOptions& options,
                                std::vector<std::string>& notes) const;

  Named chat_;
  std::optional<Named> tool_use_;
  OrderedJson special_tokens_;
  SpecialTexts special_texts_;
};

// "bos_token" ...: its text in tokenizer_config.json, where it is a string or {"content": ...}; ""
// when there is none. config: the parsed file.
std::string SpecialTokenText(const OrderedJson& config, std::string_view key);

}  // namespace tq

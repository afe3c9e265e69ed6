// TextAssets: what a checkpoint says about text: its tokenizer, chat template, sampling defaults
// and end ids. Needs no weights. Immutable after load, but for what is kept; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/dry_breaker_cache.h"
#include "api/embedding_settings.h"
#include "base/status.h"
#include "chat/prompt.h"
#include "sampling/params.h"
#include "tokenizer/tokenizer.h"
#include "weights/source.h"

namespace tq {

struct TextAssets {
  std::unique_ptr<Tokenizer> tokenizer;  // null: see tokenizer_status
  Status tokenizer_status;               // why there is no tokenizer: matters to who needs one
  std::optional<ChatPrompt> chat;        // empty: the checkpoint has none, or see chat_status
  Status chat_status;                    // not ok: there is a template that cannot be used
  SamplingParams sampling;               // of generation_config.json, else greedy
  std::vector<int32_t> end_ids;
  // Of requests, filled as they come.
  std::unique_ptr<DryBreakerCache> dry_breakers = std::make_unique<DryBreakerCache>();
  EmbeddingSettings embedding;
  Status embedding_status;  // why the checkpoint's own way to embed cannot be followed
};

// Errors: kCorrupt naming the document (configs). Missing documents are no error.
Result<TextAssets> LoadTextAssets(const WeightSource& source);

// The tokenizer. Errors: tokenizer_status.
Result<const Tokenizer*> NeedTokenizer(const TextAssets& assets);
// The template. Errors: kNotFound when there is none, else chat_status.
Result<const ChatPrompt*> NeedChat(const TextAssets& assets);

struct PromptOptions {
  bool use_chat_template = true;  // false, or no template: the text itself with the tokenizer's BOS
  std::string system;             // system message; needs the chat template
  std::optional<bool> enable_thinking;
};

// The ids of a prompt of one user message. Errors: kNotFound (no tokenizer), what the template
// raises, kInvalidArgument (a system message without a template).
Result<std::vector<int32_t>> EncodePrompt(const TextAssets& assets, const std::string& text,
                                          const PromptOptions& options);

// The ids of a rendered conversation. Errors: those of NeedTokenizer, NeedChat and the template.
Result<std::vector<int32_t>> EncodeChat(const TextAssets& assets, const ChatInput& input,
                                        const ChatPromptOptions& options);

}  // namespace tq

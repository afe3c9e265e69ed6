// ChatTemplate: renders messages with a checkpoint's Jinja template, as the Transformers
// environment does. Immutable after Parse; any thread. The engine behind it is chat/template/.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace tq {

struct TemplateLimits {
  size_t max_output_bytes = size_t{64} << 20;
  int64_t max_steps = 50'000'000;
  int max_depth = 200;
};

class ChatTemplate {
 public:
  // Errors: kUnsupported / kCorrupt naming the template line and the construct.
  static Result<ChatTemplate> Parse(std::string_view source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // variables: messages, tools, add_generation_prompt, bos_token, eos_token, enable_thinking, ...
  // Order of keys is kept (tojson shows it). Errors: kInvalidArgument with raise_exception's text;
  // kInvalidArgument on undefined use; kOutOfMemory when a limit is hit. Line numbers in messages.
  Result<std::string> Render(const OrderedJson& variables, const TemplateLimits& limits = {}) const;

  // Whether the template reads this variable of the caller.
  bool ReadsVariable(std::string_view name) const;
  // Whether it names this key of some value: m.key, m['key'], 'key' in m, m.get('key').
  bool MentionsKey(std::string_view key) const;
  // Whether a string constant of it holds this text.
  bool MentionsText(std::string_view text) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tq

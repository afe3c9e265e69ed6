// Requests of the three APIs: any JSON must become messages or an error, and what became messages
// renders, whatever a template takes, or fails. The turns that a request holds are also given back
// as generated ones.
// Input: the request.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/parse_messages.h"
#include "chat/prompt.h"

namespace {

// Of two kinds: one takes everything, the other refuses much and needs its calls.
constexpr const char* kTemplates[] = {
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}{% for m in messages %}<{{ m.role }}>"
    "{% if m.content is string %}{{ m.content | trim }}{% else %}{% for p in m.content %}"
    "{{ p.text if p.type == 'text' else '<image>' }}{% endfor %}{% endif %}"
    "{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<end>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
    "{% set n = namespace(name=none) %}{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('system') }}{% endif %}"
    "{% if m.role == 'user' and loop.previtem and loop.previtem.role == 'user' %}"
    "{{ raise_exception('turns') }}{% endif %}"
    "{% if m.role == 'tool' and not n.name %}{{ raise_exception('call') }}{% endif %}"
    "{{ m.role ~ ': ' + m.content }}{% for c in m.tool_calls or [] %}{% set n.name = "
    "c.function.name %}{{ c.function.name }}({% for k, v in c.function.arguments.items() %}"
    "{{ k }}={{ v | tojson }},{% endfor %}){% endfor %}\n{% endfor %}assistant:"};

tq::ChatPrompt Load(const char* source) {
  tq::ChatDocuments documents;
  documents.chat_template_jinja = source;
  documents.special_texts = {"<end>", "<assistant>", "a", "\xC3\xA9"};
  auto prompt = tq::ChatPrompt::Load(documents);
  if (!prompt.ok() || !prompt->has_value()) std::abort();
  return std::move(**prompt);
}

void Render(const tq::ChatPrompt& prompt, tq::ChatInput input) {
  const tq::ChatPromptOptions options;
  const auto first = prompt.RenderPrompt(input, options);
  if (!first.ok()) return;
  for (size_t i = 0; i < input.messages.size(); ++i) {
    tq::ChatMessage& message = input.messages[i];
    if (message.role != tq::ChatRole::kAssistant) continue;
    tq::ChatInput before;
    before.messages.assign(input.messages.begin(),
                           input.messages.begin() + static_cast<ptrdiff_t>(i));
    before.tools = input.tools;
    const auto answered = prompt.RenderPrompt(before, options);
    if (!answered.ok()) continue;
    message.generated = answered->Turn("<call>" + message.Text() + "}</call>", 1);
  }
  const auto second = prompt.RenderPrompt(input, options);
  if (!second.ok()) std::abort();  // it could be rendered before
  for (const auto& turn : second->repeated) {
    if (turn.begin > turn.end || turn.end > second->text.size()) std::abort();
  }
  size_t at = 0;
  for (const auto& span : second->plain) {
    if (span.begin < at || span.end <= span.begin || span.end > second->text.size()) std::abort();
    at = span.end;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tq::ChatPrompt kPrompts[] = {Load(kTemplates[0]), Load(kTemplates[1])};
  constexpr size_t kMaxMessages = 12;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto api : {tq::ChatApi::kOpenAi, tq::ChatApi::kAnthropic, tq::ChatApi::kResponses}) {
    tq::Result<tq::ChatInput> input = tq::ParseChatInput(text, "request", api);
    if (!input.ok() || input->messages.size() > kMaxMessages) continue;
    for (const tq::ChatPrompt& prompt : kPrompts) Render(prompt, *input);
  }
  return 0;
}

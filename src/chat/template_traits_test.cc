// What templates can take, and what is sent to those that cannot.
#include "chat/template_traits.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "chat/parse_messages.h"
#include "chat/prompt.h"

namespace tq {
namespace {

Result<ChatPrompt> Load(std::string_view source) {
  ChatDocuments documents;
  documents.tokenizer_config = R"({"bos_token": "<s>", "eos_token": "</s>"})";
  documents.chat_template_jinja = source;
  TQ_ASSIGN_OR_RETURN(std::optional<ChatPrompt> prompt, ChatPrompt::Load(documents));
  if (!prompt) return NotFound("no template");
  return std::move(*prompt);
}

// A template of tests/data/templates.json.
ChatPrompt Family(std::string_view name) {
  const auto text = ReadTextFile(TQ_SOURCE_DIR "/tests/data/templates.json");
  const auto fixture = ParseOrderedJson(*text, "templates.json");
  for (const OrderedJson& entry : (*fixture)["templates"]) {
    if (entry["name"] == name) return *Load(entry["source"].get_ref<const std::string&>());
  }
  ADD_FAILURE() << name;
  return *Load("{# none #}");
}

Result<std::string> Render(const ChatPrompt& prompt, std::string_view request,
                           const ChatPromptOptions& options = {}) {
  TQ_ASSIGN_OR_RETURN(const ChatInput input, ParseChatInput(request, "request"));
  return prompt.Render(input, options);
}

std::string RenderOk(const ChatPrompt& prompt, std::string_view request,
                     const ChatPromptOptions& options = {}) {
  const Result<std::string> text = Render(prompt, request, options);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

TEST(TemplateTraits, OfFamilies) {
  const TemplateTraits qwen = Family("qwen_thinking").traits(false);
  EXPECT_TRUE(qwen.takes_system && qwen.takes_late_system && qwen.takes_user_run &&
              qwen.takes_user_after_tool && qwen.takes_long_call_ids && qwen.takes_calls &&
              qwen.takes_object_arguments && qwen.knows_thoughts);
  EXPECT_FALSE(qwen.takes_developer || qwen.takes_images || qwen.wants_null_content);
  EXPECT_EQ(qwen.reasoning_key, "reasoning_content");
  const TemplateTraits gemma = Family("gemma").traits(false);
  EXPECT_TRUE(gemma.takes_system && gemma.takes_images);
  EXPECT_FALSE(gemma.takes_late_system || gemma.takes_user_run || gemma.takes_calls ||
               gemma.takes_tools || gemma.knows_thoughts);
  const TemplateTraits mistral = Family("mistral").traits(false);
  EXPECT_FALSE(mistral.takes_long_call_ids || mistral.takes_user_run);
  EXPECT_TRUE(mistral.takes_calls);
  EXPECT_TRUE(Family("harmony").traits(false).takes_developer);
  EXPECT_EQ(Family("chatml").traits(false).reasoning_key, "");
}

TEST(TemplateTraits, ATemplateThatFailsAlwaysIsNoTrouble) {
  for (const char* source : {"{{ raise_exception('no') }}", "{# nothing #}",
                             "{% for a in range(99999) %}"
                             "{% for b in range(99999) %}{% endfor %}{% endfor %}"}) {
    EXPECT_TRUE(Load(source).ok()) << source;
  }
}

constexpr const char* kAgent = R"([
    {"role": "developer", "content": "Rules"}, {"role": "developer", "content": "More"},
    {"role": "user", "content": "a"}, {"role": "user", "content": "b"},
    {"role": "assistant", "content": "c"}, {"role": "system", "content": "late"},
    {"role": "user", "content": "d"}])";

TEST(FitMessagesTest, WhatAgentsSendToTemplatesThatRaise) {
  EXPECT_EQ(RenderOk(Family("gemma"), kAgent),
            "<s><start_of_turn>user\nRules\n\nMore\n\na\n\nb<end_of_turn>\n<start_of_turn>model\nc"
            "<end_of_turn>\n<start_of_turn>user\nlate\n\nd<end_of_turn>\n<start_of_turn>model\n");
}

TEST(FitMessagesTest, TemplatesThatTakeItGetItAsItIs) {
  const std::string chatml = RenderOk(Family("chatml"), kAgent);
  EXPECT_NE(chatml.find("<|im_start|>system\nRules<|im_end|>\n<|im_start|>system\nMore<|im_end|>\n"
                        "<|im_start|>user\na<|im_end|>\n<|im_start|>user\nb<|im_end|>"),
            std::string::npos)
      << chatml;
  EXPECT_NE(chatml.find("<|im_start|>system\nlate<|im_end|>"), std::string::npos) << chatml;
}

TEST(FitMessagesTest, ASystemMessageWithoutAPlaceOfItsOwn) {
  const auto prompt = Load(
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
      "{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(RenderOk(*prompt, R"([{"role": "system", "content": "S"}, {"role": "user", "content":
      "q"}])"),
            "<user>S\n\nq");
  EXPECT_EQ(RenderOk(*prompt, R"([{"role": "system", "content": "S"}])"), "<user>S");
}

TEST(FitMessagesTest, TextBehindAToolResult) {
  const char* const request = R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "tool_calls": [{"id": "call_0123456789", "function": {"name": "f"}}]},
      {"role": "tool", "tool_call_id": "call_0123456789", "content": "r"},
      {"role": "user", "content": "go on"}],
      "tools": [{"type": "function", "function": {"name": "f"}}]})";
  const std::string mistral = RenderOk(Family("mistral"), request);
  EXPECT_NE(mistral.find("r\n\ngo on"), std::string::npos) << mistral;
  // Its ids have nine characters: the same for call and result.
  EXPECT_EQ(mistral.find("call_0123456789"), std::string::npos) << mistral;
  const size_t id = mistral.find("\"call_id\": \"") + 12;
  EXPECT_NE(mistral.find("\"id\": \"" + mistral.substr(id, 9) + "\""), std::string::npos);
  const std::string qwen = RenderOk(Family("qwen_thinking"), request);
  EXPECT_NE(qwen.find("<|im_start|>user\ngo on<|im_end|>"), std::string::npos) << qwen;
}

TEST(FitMessagesTest, Images) {
  const char* const request = R"([{"role": "user", "content": [{"type": "text", "text": "see"},
      {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}])";
  EXPECT_NE(RenderOk(Family("gemma"), request).find("see<start_of_image>"), std::string::npos);
  const Result<std::string> refused = Render(Family("chatml"), request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(),
            "message 0 (user): expected text, found an image: the chat template of this model "
            "takes none");
}

TEST(FitMessagesTest, CallsOfTemplatesWithTheirOwnWishes) {
  const char* const request = R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": {"name": "f",
       "arguments": "{\"a\": 1}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "r"}]})";
  // Calls are shown only where content is none, and arguments are a text.
  const auto old_style = Load(
      "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.name + '(' + "
      "m.tool_calls[0].function.arguments + ')' }}{% else %}{{ m.content }}{% endif %};{% endfor "
      "%}");
  EXPECT_EQ(RenderOk(*old_style, request), R"(q;f({"a": 1});r;)");
  // The result is shown by the name of its function, which two of the APIs do not send.
  const auto named = Load(
      "{% for m in messages %}{{ m.name }}{{ m.content }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %};{% endfor %}");
  EXPECT_EQ(RenderOk(*named, request), R"(q;f{"a": 1};fr;)");
  // Thoughts are the text of a call.
  const auto joined = Load(
      "{% for m in messages %}{% if m.tool_calls and m.content and m.thinking %}"
      "{{ raise_exception('one of them') }}{% endif %}{{ m.content or m.thinking }}"
      "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %};{% endfor %}");
  EXPECT_EQ(RenderOk(*joined, R"([{"role": "user", "content": "q"}, {"role": "assistant",
      "content": "say", "reasoning": "hm", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
      {"role": "tool", "tool_call_id": "c", "content": "r"}])"),
            "q;hm\n\nsay{\"name\": \"f\", \"arguments\": {}};r;");
}

TEST(ReasoningEffort, BecomesWhatTheTemplateReads) {
  const char* const request = R"([{"role": "user", "content": "q"}])";
  const auto render = [&](std::string_view source, const std::string& effort) {
    const auto prompt = Load(source);
    return RenderOk(*prompt, request, {.reasoning_effort = effort});
  };
  const char* const by_name = "{{ reasoning_effort | default('unset') }}";
  EXPECT_EQ(render(by_name, ""), "unset");
  EXPECT_EQ(render(by_name, "medium"), "medium");
  EXPECT_EQ(render(by_name, "minimal"), "low");
  EXPECT_EQ(render(by_name, "none"), "low");
  EXPECT_EQ(render(by_name, "max"), "high");
  EXPECT_EQ(render("{{ 1 if reasoning_effort == 'none' }}", "none"), "1");
  const char* const by_switch = "{{ enable_thinking if enable_thinking is defined else '-' }}";
  EXPECT_EQ(render(by_switch, ""), "-");
  EXPECT_EQ(render(by_switch, "none"), "False");
  EXPECT_EQ(render(by_switch, "low"), "True");
  EXPECT_EQ(render("{{ thinking | default('-') }}", "none"), "False");

  const auto deaf = Load("x");
  const auto input = ParseChatInput(request, "x");
  EXPECT_EQ(deaf->RenderPrompt(*input, {.reasoning_effort = "high"})->notes.size(), 1u);
  EXPECT_EQ(deaf->Render(*input, {.reasoning_effort = "much"}).status().message(),
            "reasoning_effort: expected none, minimal, low, medium, high, xhigh or max, found "
            "\"much\"");
}

TEST(ChatPromptVariables, MoreOfThem) {
  ChatPromptOptions options;
  options.variables = {{"documents", {"a", "b"}}, {"style", "short"}};
  EXPECT_EQ(RenderOk(*Load("{{ documents | join('+') }} {{ style }}"),
                     R"([{"role": "user", "content": "q"}])", options),
            "a+b short");
}

TEST(UsedNames, VariablesAndKeys) {
  const auto parsed = ChatTemplate::Parse(
      "{% set mine = 1 %}{% macro f(p) %}{{ p.inner }}{{ outer }}{% endmacro %}"
      "{% for m in messages if m['k1'] %}{{ mine }}{{ m.get('k2') }}{{ 'k3' in m }}{{ m.k4.k5 }}"
      "{% endfor %}{{ f(1) }}{% if flag %}{{ '</think>' }}{% endif %}");
  ASSERT_TRUE(parsed.ok());
  for (const char* name : {"messages", "outer", "flag"}) EXPECT_TRUE(parsed->ReadsVariable(name));
  for (const char* name : {"mine", "p", "m", "f"}) EXPECT_FALSE(parsed->ReadsVariable(name));
  for (const char* key : {"k1", "k2", "k3", "k4", "k5", "inner"}) {
    EXPECT_TRUE(parsed->MentionsKey(key)) << key;
  }
  EXPECT_FALSE(parsed->MentionsKey("messages"));
  EXPECT_TRUE(parsed->MentionsText("think"));
}

}  // namespace
}  // namespace tq

#include "chat/prompt.h"

#include <gtest/gtest.h>

#include "chat/parse_messages.h"

namespace tq {
namespace {

constexpr const char* kMessages = R"([{"role": "user", "content": "hi"}])";

std::string RenderHi(const ChatDocuments& documents, const ChatPromptOptions& options = {}) {
  const auto prompt = ChatPrompt::Load(documents);
  if (!prompt.ok()) return "error: " + prompt.status().message();
  if (!prompt.value().has_value()) return "none";
  const auto input = ParseChatInput(kMessages, "test");
  const auto text = prompt.value()->Render(input.value(), options);
  return text.ok() ? text.value() : "error: " + text.status().message();
}

TEST(ChatPrompt, TemplateOfTheConfigWithSpecialTokens) {
  ChatDocuments documents;
  documents.tokenizer_config =
      R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>",
          "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"})";
  EXPECT_EQ(RenderHi(documents), "<s>hi</s>");
  documents.chat_template_jinja = "[{{ messages[0]['role'] }}]";
  EXPECT_EQ(RenderHi(documents), "[user]");
}

TEST(ChatPrompt, OtherPlaces) {
  ChatDocuments documents;
  EXPECT_EQ(RenderHi(documents), "none");
  documents.chat_template_json = R"({"chat_template": "{{ unk_token }}{{ tools is none }}"})";
  documents.special_tokens_map = R"({"unk_token": "<unk>"})";
  EXPECT_EQ(RenderHi(documents), "<unk>True");
  documents.tokenizer_config = R"({"chat_template": [{"name": "tool_use", "template": "T"},
                                                     {"name": "default", "template": "D"}]})";
  EXPECT_EQ(RenderHi(documents), "D");
}

TEST(ChatPrompt, OptionsReachTheTemplate) {
  ChatDocuments documents;
  documents.chat_template_jinja =
      "{{ add_generation_prompt }} {{ enable_thinking if enable_thinking is defined else '-' }}";
  EXPECT_EQ(RenderHi(documents), "True -");
  EXPECT_EQ(RenderHi(documents, {.add_generation_prompt = false, .enable_thinking = false}),
            "False False");
}

TEST(ChatPrompt, BadDocuments) {
  ChatDocuments documents;
  documents.tokenizer_config = "[]";
  EXPECT_EQ(RenderHi(documents), "error: tokenizer_config.json: expected an object, found array");
  documents.tokenizer_config = R"({"chat_template": 3})";
  EXPECT_NE(RenderHi(documents).find("expected a text or a list, found number"), std::string::npos);
  documents.tokenizer_config = R"({"chat_template": [{"name": "tool_use", "template": "T"}]})";
  EXPECT_NE(RenderHi(documents).find("expected one named \"default\""), std::string::npos);
}

}  // namespace
}  // namespace tq

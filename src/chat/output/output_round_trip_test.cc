// What a model wrote, as the parser reads it, goes back into the next prompt byte for byte: over
// the templates of tests/data/templates.json, in the syntax that is found in each.
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "chat/output/output_parser.h"
#include "chat/output/parse_all.h"
#include "chat/prompt.h"

namespace tq {
namespace {

std::map<std::string, std::string> Templates() {
  std::map<std::string, std::string> templates;
  const auto text = ReadTextFile(TQ_SOURCE_DIR "/tests/data/templates.json");
  const auto fixture = ParseOrderedJson(text.ok() ? *text : "{}", "templates.json");
  for (const OrderedJson& entry : (*fixture)["templates"]) {
    templates[entry["name"].get<std::string>()] = entry["source"].get<std::string>();
  }
  return templates;
}

// How a model of a syntax calls find(n=1), spaced as no template does it.
const std::map<ToolSyntax, std::string>& Calls() {
  static const auto* const kCalls = new std::map<ToolSyntax, std::string>{
      {ToolSyntax::kHermes,
       "\n<tool_call>\n{ \"name\":\"find\",  \"arguments\": {\"n\":1 } }\n</tool_call>"},
      {ToolSyntax::kQwenXml,
       "<tool_call>\n<function=find><parameter=n>1</parameter></function></tool_call>"},
      {ToolSyntax::kSeed,
       "<seed:tool_call><function=find><parameter=n> 1</parameter>\n</function></seed:tool_call>"},
      {ToolSyntax::kGlm,
       "\n<tool_call>find <arg_key>n</arg_key><arg_value> 1</arg_value></tool_call>"},
      {ToolSyntax::kMistral, "[TOOL_CALLS]find[ARGS]{\"n\":1}"},
      {ToolSyntax::kLlama3, "{\"name\":\"find\", \"parameters\":{ \"n\": 1}}"},
      {ToolSyntax::kLlama4, "[find( n=1 )]"},
      {ToolSyntax::kNemotron,
       "<TOOLCALL>[{\"name\":\"find\",\"arguments\":{\"n\":1}} ]</TOOLCALL>"},
      {ToolSyntax::kGemma4, "<|tool_call>call:find{n: 1}<tool_call|>"},
      {ToolSyntax::kHarmony,
       "<|channel|>commentary to=functions.find <|constrain|>json<|message|>{\"n\":1}"},
  };
  return *kCalls;
}

TEST(OutputRoundTrip, CallsAreRepeatedAsTheyWereGenerated) {
  const std::vector<ToolSpec> tools = {MakeTool("find", R"({"n": {"type": "integer"}})")};
  std::set<ToolSyntax> seen;
  for (const auto& [name, source] : Templates()) {
    SCOPED_TRACE(name);
    OutputParserOptions options;
    options.syntax = DetectOutputSyntax(source);
    const auto call = Calls().find(options.syntax.tools);
    if (call == Calls().end()) continue;
    ChatDocuments documents;
    documents.tokenizer_config = R"({"bos_token": "<s>", "eos_token": "</s>"})";
    documents.chat_template_jinja = source;
    const auto prompt = ChatPrompt::Load(documents);
    ASSERT_TRUE(prompt.ok() && prompt->has_value());
    ChatInput input;
    input.tools = tools;
    input.messages = {MakeMessage(
        ChatRole::kUser, "look up one, please, and take all the time you need, there is enough")};
    const auto first = (*prompt)->RenderPrompt(input, {});
    ASSERT_TRUE(first.ok());
    std::string generated = call->second;
    options.starts_in_reasoning = PromptOpensReasoning(options.syntax.reasoning, first->text);
    if (options.starts_in_reasoning) generated = "</think>" + generated;
    if (name == "mistral")
      generated =
          "[TOOL_CALLS][{\"name\":\"find\",\"arguments\":{\"n\":1}, \"id\": \"call10001\"}]";
    ChatMessage message;
    message.role = ChatRole::kAssistant;
    for (const OutputEvent& event : ParseAll(options, tools, generated)) AddEvent(event, message);
    ASSERT_EQ(message.tool_calls.size(), 1u) << generated;
    EXPECT_EQ(message.tool_calls[0].name, "find");
    const auto arguments = ParseOrderedJson(message.tool_calls[0].arguments, "arguments");
    ASSERT_TRUE(arguments.ok());
    EXPECT_EQ((*arguments)["n"], 1) << message.tool_calls[0].arguments;
    message.tool_calls[0].id = "call10001";
    message.generated = first->Turn(generated, 1);
    input.messages.push_back(message);
    ChatMessage result = MakeMessage(ChatRole::kTool, "found 1");
    result.tool_call_id = "call10001";
    input.messages.push_back(result);
    const auto second = (*prompt)->RenderPrompt(input, {});
    ASSERT_TRUE(second.ok());
    EXPECT_TRUE(second->text.starts_with(first->text + generated)) << second->text;
    ASSERT_EQ(second->repeated.size(), 1u);
    EXPECT_TRUE(second->repeated[0].continues_prompt);
    EXPECT_NE(second->text.find("found 1", second->repeated[0].end), std::string::npos);
    seen.insert(options.syntax.tools);
  }
  EXPECT_EQ(seen.size(), Calls().size());
}

TEST(OutputRoundTrip, ThoughtsOfARoundOfCallsStay) {
  const std::vector<ToolSpec> tools = {MakeTool("find", R"({"n": {"type": "integer"}})")};
  const std::string source = Templates().at("qwen_thinking");
  OutputParserOptions options;
  options.syntax = DetectOutputSyntax(source);
  EXPECT_EQ(options.syntax.tools, ToolSyntax::kHermes);
  EXPECT_EQ(options.syntax.reasoning, ReasoningSyntax::kThink);
  ChatDocuments documents;
  documents.chat_template_jinja = source;
  const auto prompt = ChatPrompt::Load(documents);
  ASSERT_TRUE(prompt.ok() && prompt->has_value());
  ChatInput input;
  input.tools = tools;
  input.messages = {MakeMessage(ChatRole::kUser, "look up one, and take your time for it")};
  const auto first = (*prompt)->RenderPrompt(input, {});
  ASSERT_TRUE(first.ok());
  const std::string generated =
      "<think>\nI need it. \n</think>\n\n<tool_call>{\"name\": \"find\", \"arguments\": {\"n\": 1}}"
      "</tool_call>";
  ChatMessage message;
  message.role = ChatRole::kAssistant;
  for (const OutputEvent& event : ParseAll(options, tools, generated)) AddEvent(event, message);
  EXPECT_EQ(message.reasoning, "\nI need it. \n");
  EXPECT_TRUE(message.content.empty());
  ASSERT_EQ(message.tool_calls.size(), 1u);
  message.tool_calls[0].id = "call10001";
  message.generated = first->Turn(generated, 1);
  input.messages.push_back(message);
  ChatMessage result = MakeMessage(ChatRole::kTool, "found 1");
  result.tool_call_id = "call10001";
  input.messages.push_back(result);
  const auto second = (*prompt)->RenderPrompt(input, {});
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->text.starts_with(first->text + generated)) << second->text;
}

}  // namespace
}  // namespace tq

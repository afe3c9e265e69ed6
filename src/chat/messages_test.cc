// Requests of the three APIs -> messages, and what clients send that is not quite right.
#include "chat/messages.h"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chat/parse_messages.h"
#include "chat/template_messages.h"

namespace tq {
namespace {

Result<ChatInput> Parse(std::string_view json, std::optional<ChatApi> api = std::nullopt) {
  return ParseChatInput(json, "request", api);
}

// What a template that takes everything gets.
OrderedJson Shown(const ChatInput& input) {
  TemplateTraits traits;
  traits.takes_images = traits.takes_tool_images = true;
  traits.reasoning_key = "reasoning_content";
  return TemplateMessages(input.messages, traits);
}

std::string ShownText(std::string_view json, std::optional<ChatApi> api = std::nullopt) {
  const Result<ChatInput> input = Parse(json, api);
  return input.ok() ? Shown(*input).dump() : "error: " + input.status().message();
}

std::string ErrorOf(std::string_view json, std::optional<ChatApi> api = std::nullopt) {
  const Result<ChatInput> input = Parse(json, api);
  EXPECT_FALSE(input.ok()) << json;
  EXPECT_EQ(input.status().code(), StatusCode::kInvalidArgument);
  return input.status().message();
}

TEST(ChatMessages, OneConversationThreeShapes) {
  const char* const openai = R"({"messages": [
    {"role": "system", "content": "S"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": "say", "reasoning_content": "hm", "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"z\": 1, \"a\": [2]}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]})";
  const char* const anthropic =
      R"({"system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
    "messages": [
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {}}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"},
      {"type": "redacted_thinking", "data": "?"}, {"type": "text", "text": "say"},
      {"type": "tool_use", "id": "c1", "name": "f", "input": {"z": 1, "a": [2]}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r"}]}],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}]})";
  const char* const responses = R"({"instructions": "S", "input": [
    {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}], "content": null},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "say", "annotations": []}]},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"z\":1,\"a\":[2]}"},
    {"type": "function_call_output", "call_id": "c1", "output": "r"}],
    "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": false}]})";
  const std::string expected =
      R"([{"role":"system","content":"S"},{"role":"user","content":"ab"},)"
      R"({"role":"assistant","content":"say","reasoning_content":"hm","tool_calls":[{"id":"c1",)"
      R"("type":"function","function":{"name":"f","arguments":{"z":1,"a":[2]}}}]},)"
      R"({"role":"tool","content":"r","tool_call_id":"c1"}])";
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}])";
  for (const char* request : {openai, anthropic, responses}) {
    const Result<ChatInput> input = Parse(request);
    ASSERT_TRUE(input.ok()) << input.status().message();
    EXPECT_EQ(Shown(*input).dump(), expected);
    EXPECT_EQ(TemplateTools(input->tools).dump(), tools);
  }
  EXPECT_EQ(Parse(anthropic)->messages[2].reasoning_signature, "x");
  EXPECT_EQ(TurnKey(Parse(openai)->messages[2], true),
            TurnKey(Parse(responses)->messages[2], true));
}

TEST(ChatMessages, TheShapeIsFoundByItsKeys) {
  const auto detect = [](std::string_view json) {
    return DetectChatApi(ParseOrderedJson(json, "x").value());
  };
  EXPECT_EQ(detect(R"([{"role": "user", "content": "x"}])"), ChatApi::kOpenAi);
  EXPECT_EQ(detect(R"({"input": "x"})"), ChatApi::kResponses);
  EXPECT_EQ(detect(R"({"system": "x", "messages": []})"), ChatApi::kAnthropic);
  EXPECT_EQ(detect(R"({"messages": [], "tools": [{"input_schema": {}}]})"), ChatApi::kAnthropic);
  EXPECT_EQ(detect(R"([{"role": "user", "content": [{"type": "tool_result"}]}])"),
            ChatApi::kAnthropic);
  EXPECT_EQ(detect("3"), ChatApi::kOpenAi);
  EXPECT_EQ(ParseApiName("responses"), ChatApi::kResponses);
  EXPECT_FALSE(ParseApiName("other").has_value());
}

TEST(ChatMessages, ErrorsNameThePath) {
  EXPECT_EQ(ErrorOf(R"([{"role": "user", "content": "x"}, {"role": "user", "content": [{"type":
              "text", "text": "x"}, {"type": "video"}]}])"),
            "request: messages[1].content[1].type: expected \"text\" or \"image_url\", found "
            "\"video\"");
  EXPECT_EQ(ErrorOf(R"({"messages": [{"role": "boss", "content": "x"}]})"),
            "request: messages[0].role: expected \"system\", \"developer\", \"user\", "
            "\"assistant\" or \"tool\", found \"boss\"");
  EXPECT_EQ(ErrorOf(R"([{"role": "user", "content": null}])"),
            "request: messages[0].content: expected a text or a list of parts, found nothing");
  EXPECT_EQ(ErrorOf(R"({"messages": []})"),
            "request: messages: expected a list of messages, found an empty list");
  EXPECT_EQ(ErrorOf("{}"), "request: messages: expected a list of messages, found nothing");
  EXPECT_EQ(ErrorOf("[3]"), "request: messages[0]: expected an object, found 3");
  EXPECT_EQ(ErrorOf(R"({"messages": [{"role": "user", "content": "x"}], "tools": 3})"),
            "request: tools: expected a list, found 3");
  EXPECT_EQ(ErrorOf(R"({"messages": [{"role": "user", "content": "x"}], "tools":
              [{"type": "function", "function": {"name": ""}}]})"),
            "request: tools[0].function.name: expected the name of a function, found \"\"");
  EXPECT_EQ(ErrorOf(R"([{"role": "assistant", "tool_calls": [{"function": {"name": 4}}]}])"),
            "request: messages[0].tool_calls[0].function.name: expected a text, found 4");
  EXPECT_EQ(ErrorOf(R"({"messages": [{"role": "user", "content": [{"type": "thinking"}]}]})"),
            "request: messages[0].content[0].type: expected \"text\", \"image\" or "
            "\"tool_result\", found \"thinking\"");
  EXPECT_EQ(ErrorOf(R"({"system": [{"type": "image"}], "messages": [{"role": "user", "content":
              "x"}]})"),
            "request: system[0].type: expected \"text\", found \"image\"");
  EXPECT_EQ(ErrorOf(R"({"input": [{"type": "bogus"}]})"),
            "request: input[0].type: expected \"message\", \"function_call\", "
            "\"function_call_output\" or \"reasoning\", found \"bogus\"");
  EXPECT_EQ(ErrorOf(R"({"input": []})"),
            "request: input: expected at least one message, found an empty list");
  EXPECT_EQ(ErrorOf("3"), "request: request: expected an object or a list of messages, found 3");
  // A long value does not make a long error.
  EXPECT_LT(ErrorOf("[{\"role\": \"" + std::string(10000, 'x') + "\"}]").size(), 300u);
  EXPECT_EQ(Parse("{").status().code(), StatusCode::kCorrupt);
}

TEST(ChatMessages, SilentCallsRenderAlike) {
  std::set<std::string> shown;
  for (const char* content :
       {R"("content": null,)", "", R"("content": "",)", R"("content": [],)"}) {
    shown.insert(ShownText(R"([{"role": "user", "content": "q"}, {"role": "assistant", )" +
                           std::string(content) +
                           R"("tool_calls": [{"id": "c1", "function": {"name": "f"}}]},
                              {"role": "tool", "tool_call_id": "c1", "content": "r"}])"));
  }
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_NE(shown.begin()->find(R"("content":"","tool_calls")"), std::string::npos);
}

TEST(ChatMessages, TextPartsAreJoinedForEveryRole) {
  for (const char* role : {"system", "developer", "user", "assistant", "tool"}) {
    const std::string json = R"([{"role": ")" + std::string(role) +
                             R"(", "content": [{"type": "text", "text": "A"}, "B"]}])";
    const Result<ChatInput> input = Parse(json);
    ASSERT_TRUE(input.ok()) << input.status().message();
    EXPECT_TRUE(input->messages[0].Text().ends_with("AB"));
  }
}

TEST(ChatMessages, ArgumentsInEveryForm) {
  const auto arguments = [](const std::string& json) {
    return Parse(R"([{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f",
                     "arguments": )" +
                 json + "}}]}]")
        ->messages[0]
        .tool_calls[0]
        .arguments;
  };
  EXPECT_EQ(arguments(R"({"a": 1})"), R"({"a":1})");
  EXPECT_EQ(arguments(R"("{\"a\": 1}")"), R"({"a": 1})");
  EXPECT_EQ(arguments(R"("")"), "{}");
  EXPECT_EQ(arguments("null"), "{}");
  // JSON in JSON text is unwrapped once, and what is no object stays what it is.
  EXPECT_EQ(arguments(R"("\"{\\\"n\\\": 3}\"")"), R"({"n": 3})");
  EXPECT_EQ(arguments(R"("\"text\"")"), R"("text")");
  EXPECT_EQ(arguments(R"("{\"city\": \"Os")"), R"({"city": "Os)");
  const std::string json = ShownText(R"([{"role": "assistant", "tool_calls": [{"id": "c",
      "function": {"name": "f", "arguments": "{\"city\": \"Os"}}]}])");
  EXPECT_NE(json.find(R"("arguments":"{\"city\": \"Os")"), std::string::npos) << json;
}

TEST(ChatMessages, IncompleteToolsAreCompleted) {
  const std::string tools = TemplateTools(Parse(R"({"messages": [{"role": "user", "content": "x"}],
      "tools": [{"type": "function", "function": {"name": "ping"}},
                {"type": "function", "function": {"name": "add", "strict": true, "parameters":
                 {"b": 1, "a": 2}, "description": "d"}}]})")
                                              ->tools)
                                .dump();
  EXPECT_EQ(tools,
            R"([{"type":"function","function":{"name":"ping","description":"","parameters":)"
            R"({"type":"object","properties":{}}}},{"type":"function","function":{"name":"add",)"
            R"("strict":true,"parameters":{"b":1,"a":2},"description":"d"}}])");
}

TEST(ChatMessages, ToolsThatRunElsewhereAreLeftOut) {
  const Result<ChatInput> openai = Parse(R"({"messages": [{"role": "user", "content": "x"}],
      "tools": [{"type": "web_search"}]})");
  EXPECT_TRUE(openai->tools.empty());
  EXPECT_EQ(openai->notes.size(), 1u);
  EXPECT_TRUE(TemplateTools(openai->tools).is_null());
  const Result<ChatInput> anthropic = Parse(R"({"system": "", "messages": [{"role": "user",
      "content": "x"}], "tools": [{"type": "web_search_20250305", "name": "web_search"}]})");
  EXPECT_TRUE(anthropic->tools.empty());
  EXPECT_EQ(anthropic->messages.size(), 1u);
}

TEST(ChatMessages, ImagesStayAsTheyCame) {
  const Result<ChatInput> openai = Parse(R"([{"role": "user", "content": [{"type": "image_url",
      "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}}, {"type": "image_url",
      "image_url": "https://x/y.jpg"}, {"type": "text", "text": "?"}]}])");
  ASSERT_TRUE(openai.ok()) << openai.status().message();
  const std::vector<ContentPart>& parts = openai->messages[0].content;
  EXPECT_EQ(parts[0].image.media_type, "image/png");
  EXPECT_EQ(parts[0].image.data, "QUJD");
  EXPECT_EQ(parts[0].image.detail, "low");
  EXPECT_EQ(parts[1].image.url, "https://x/y.jpg");
  EXPECT_EQ(Shown(*openai)[0]["content"].dump(),
            R"([{"type":"image"},{"type":"image"},{"type":"text","text":"?"}])");
  const Result<ChatInput> anthropic = Parse(R"({"system": "s", "messages": [{"role": "user",
      "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image",
      "source": {"type": "base64", "media_type": "image/gif", "data": "R0"}}]}]}]})");
  EXPECT_EQ(anthropic->messages[1].content.back().image.data, "R0");
  const Result<ChatInput> responses = Parse(R"({"input": [{"role": "user", "content": [
      {"type": "input_image", "file_id": "f1", "detail": "high"}]}]})");
  EXPECT_EQ(responses->messages[0].content[0].image.file_id, "f1");
}

TEST(ChatMessages, AnthropicSystemBlocks) {
  // The billing line differs in every session; an empty block with cache_control is no error.
  const Result<ChatInput> input = Parse(R"({"system": [
      {"type": "text", "text": "x-anthropic-billing-header: cc_version=1.2.abc;"},
      {"type": "text", "text": "", "cache_control": {"type": "ephemeral"}},
      {"type": "text", "text": "Identity"}, {"type": "text", "text": "Rules"}],
      "messages": [{"role": "user", "content": "q"}, {"role": "system", "content": [{"type": "text",
      "text": "late"}]}]})");
  ASSERT_TRUE(input.ok()) << input.status().message();
  EXPECT_EQ(Shown(*input).dump(),
            R"([{"role":"system","content":"Identity\n\nRules"},{"role":"user","content":"q"},)"
            R"({"role":"system","content":"late"}])");
}

TEST(ChatMessages, AnthropicResultsComeBeforeTheTextOfTheirMessage) {
  const std::string shown = ShownText(R"({"system": "", "messages": [
      {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}},
                                        {"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "text", "text": "go on"},
        {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": [
           {"type": "text", "text": "1"}, {"type": "text", "text": "2"}]},
        {"type": "tool_result", "tool_use_id": "a"}]}]})");
  EXPECT_NE(shown.find(R"({"role":"tool","content":"","tool_call_id":"a"},)"
                       R"({"role":"tool","content":"12","tool_call_id":"b"},)"
                       R"({"role":"user","content":"go on"}])"),
            std::string::npos)
      << shown;
}

TEST(ChatMessages, DeferredToolsAreShownWhereTheyAreReferredTo) {
  const Result<ChatInput> input = Parse(R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Search", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [
        {"type": "tool_reference", "tool_name": "Fetch"}, {"type": "tool_reference", "tool_name": "?"}]}]}],
      "tools": [{"name": "Search", "input_schema": {}}, {"name": "Fetch", "description": "d",
                 "input_schema": {"type": "object"}, "defer_loading": true}]})");
  ASSERT_TRUE(input.ok()) << input.status().message();
  EXPECT_EQ(TemplateTools(input->tools).size(), 1u);
  EXPECT_EQ(input->messages[2].Text(),
            R"({"type":"function","function":{"name":"Fetch","description":"d","parameters":)"
            "{\"type\":\"object\"}}}\n?\n");
}

TEST(ChatMessages, ResponsesItems) {
  EXPECT_EQ(ShownText(R"({"input": "hi", "instructions": null})"),
            R"([{"role":"user","content":"hi"}])");
  // Calls that follow each other are one message; orphans and replayed ids do not end the session.
  const std::string shown = ShownText(R"({"input": [
      {"role": "user", "content": "q"},
      {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": null},
      {"type": "reasoning", "id": "r2"}, {"type": "item_reference", "id": "m"},
      {"type": "web_search_call", "id": "w"},
      {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
      {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "+x"},
      {"type": "message", "role": "assistant", "content": "text behind"},
      {"type": "function_call_output", "call_id": "c1", "output": "r"},
      {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]},
      {"type": "function_call_output", "call_id": "c9", "output": "lost"}]})");
  EXPECT_EQ(
      shown,
      R"([{"role":"user","content":"q"},{"role":"assistant","content":"text behind",)"
      R"("tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{}}},)"
      R"({"id":"c2","type":"function","function":{"name":"patch","arguments":{"input":"+x"}}}]},)"
      R"({"role":"tool","content":"r","tool_call_id":"c1"},)"
      R"({"role":"tool","content":"ok","tool_call_id":"c2"},)"
      R"({"role":"user","content":"Result of a tool call:\nlost"}])");
}

TEST(ChatMessages, ResponsesThoughtsGoWithTheirAnswer) {
  const std::string shown = ShownText(R"({"input": [
      {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "full"}],
       "summary": [{"type": "summary_text", "text": "short"}]},
      {"role": "assistant", "content": "one"}, {"role": "assistant", "content": "two"},
      {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]},
      {"role": "user", "content": "u"}]})");
  EXPECT_EQ(shown, R"([{"role":"assistant","content":"one","reasoning_content":"full"},)"
                   R"({"role":"assistant","content":"two"},{"role":"user","content":"u"}])");
}

TEST(ChatMessages, ResponsesNameSpacesAndEarlierItems) {
  const OrderedJson body = OrderedJson::parse(R"({"input": "next", "tools": [
      {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close"}]},
      {"type": "custom", "name": "patch", "format": {"type": "grammar", "definition": "start: /x/"}},
      {"type": "web_search"}]})");
  const OrderedJson earlier = OrderedJson::parse(R"([{"role": "user", "content": "first"},
      {"type": "function_call", "call_id": "c", "namespace": "agents", "name": "close",
       "arguments": "{}"}])");
  const Result<ChatInput> input = ParseResponsesChat(body, earlier);
  ASSERT_TRUE(input.ok()) << input.status().message();
  ASSERT_EQ(input->tools.size(), 2u);
  EXPECT_EQ(input->tools[0].name, "agents__close");
  EXPECT_EQ(input->tools[0].name_space, "agents");
  EXPECT_TRUE(input->tools[1].is_custom);
  EXPECT_EQ(input->messages[1].tool_calls[0].name, "agents__close");
  EXPECT_EQ(input->messages.back().Text(), "next");
  std::string deep = R"({"type": "function", "name": "f"})";
  for (int i = 0; i < 20; ++i)
    deep = R"({"type": "namespace", "name": "n", "tools": [)" + deep + "]}";
  EXPECT_NE(ErrorOf(R"({"input": "x", "tools": [)" + deep + "]}").find("name spaces"),
            std::string::npos);
}

TEST(TurnKeyTest, SpacingOfArgumentsDoesNotMatter) {
  ChatMessage a = MakeMessage(ChatRole::kAssistant, "x");
  a.reasoning = "r";
  a.tool_calls.push_back({"id1", "f", R"({"b": 1, "a": 2})"});
  ChatMessage b = a;
  b.tool_calls[0] = {"other", "f", R"({"a":2,"b":1})"};
  EXPECT_EQ(TurnKey(a, true), TurnKey(b, true));
  b.reasoning = "";
  EXPECT_NE(TurnKey(a, true), TurnKey(b, true));
  EXPECT_EQ(TurnKey(a, false), TurnKey(b, false));
  b.tool_calls[0].arguments = "{broken";
  EXPECT_NE(TurnKey(a, false), TurnKey(b, false));
}

}  // namespace
}  // namespace tq

// What goes wrong with tool calls and thoughts elsewhere, and must not here.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chat/output/output_parser.h"
#include "chat/output/parse_all.h"

namespace tq {
namespace {

const std::vector<ToolSpec>& Tools() {
  static const auto* const kTools = new std::vector<ToolSpec>{
      MakeTool("weather", R"({"city": {"type": "string"}, "days": {"type": "integer"}})"),
      MakeTool("find", R"({"text": {"type": "string"}, "limit": {"type": "integer"},
                           "offset": {"type": ["integer", "null"]}})"),
      MakeTool("shell", R"({"command": {"type": "string"}})"),
      MakeTool("get_time", R"({"zone": {"type": "string"}})"), MakeTool("ping", "{}")};
  return *kTools;
}

OutputParserOptions With(ToolSyntax tools, ReasoningSyntax reasoning = ReasoningSyntax::kThink) {
  OutputParserOptions options;
  options.syntax = {tools, reasoning};
  return options;
}

std::string Parse(const OutputParserOptions& options, std::string_view text) {
  return Show(ParseAll(options, Tools(), text));
}

TEST(OutputCases, ATruncatedKeyEndsTheCallWhereItIs) {
  const std::string text = R"(<tool_call>{"name":"weather","arguments":{"city":"Oslo","un)";
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes), text),
            "call 0 weather: {\"city\":\"Oslo\",\"un (cut)\n");
  OutputParserOptions held = With(ToolSyntax::kHermes);
  held.stream_arguments = false;
  EXPECT_EQ(Parse(held, text), "text: " + text + "\n");
}

TEST(OutputCases, TextIsLegalWhenToolsAreOffered) {
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes), "Hello! <b>How</b> are you?"),
            "text: Hello! <b>How</b> are you?\n");
}

TEST(OutputCases, AnySubsetAndOrderOfArguments) {
  EXPECT_EQ(Parse(With(ToolSyntax::kQwenXml),
                  "<tool_call>\n<function=find>\n<parameter=offset>\n5\n</parameter>\n"
                  "<parameter=text>\na\n</parameter>\n</function>\n</tool_call>"),
            "call 0 find: {\"offset\": 5, \"text\": \"a\"}\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                  R"(<tool_call>{"arguments": {"offset": 5}, "name": "find"}</tool_call>)"),
            "call 0 find: {\"offset\": 5}\n");
}

TEST(OutputCases, BracesInsideOfStringsCountForNothing) {
  const std::string arguments = R"({"command": "cp -r src/{lib,bin dest \"[}"})";
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                  "<tool_call>{\"name\": \"shell\", \"arguments\": " + arguments + "}</tool_call>"),
            "call 0 shell: " + arguments + "\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kMistral), "[TOOL_CALLS]shell[ARGS]" + arguments),
            "call 0 shell: " + arguments + "\n");
}

TEST(OutputCases, ClosingMarksInsideOfStringsCountForNothing) {
  const std::string arguments = R"({"command": "echo '</tool_call>'"})";
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                  "<tool_call>{\"name\": \"shell\", \"arguments\": " + arguments + "}</tool_call>"),
            "call 0 shell: " + arguments + "\n");
}

TEST(OutputCases, ClosingPunctuationOfTheLastToken) {
  // ParseAll cuts everywhere; here are tokens that glue it together.
  const std::vector<ToolSpec>& tools = Tools();
  const std::string text = R"([TOOL_CALLS][{"name": "weather", "arguments": {"city": "42."}}])";
  const auto whole = Show(ParsePieces(With(ToolSyntax::kMistral), tools, text, {}));
  EXPECT_EQ(whole, "call 0 weather: {\"city\": \"42.\"}\n");
  for (const size_t tail : {1u, 2u, 3u, 4u, 5u}) {
    EXPECT_EQ(Show(ParsePieces(With(ToolSyntax::kMistral), tools, text, {text.size() - tail})),
              whole);
  }
}

TEST(OutputCases, TheEndOfTheTextClosesACallWithoutMark) {
  EXPECT_EQ(Parse(With(ToolSyntax::kMistral), R"([TOOL_CALLS]weather{"city":"Oslo"})"),
            "call 0 weather: {\"city\":\"Oslo\"}\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kGranite),
                  R"(<|tool_call|>[{"name": "weather", "arguments": {"city":"Oslo"}}])"),
            "call 0 weather: {\"city\":\"Oslo\"}\n");
}

TEST(OutputCases, AnUnfinishedMarkAtTheEndIsText) {
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes), "Look: <tool_"), "text: Look: <tool_\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes), "<tool_call>"), "text: <tool_call>\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes), "<thi"), "text: <thi\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes), "<think>a</thin"), "thought: a</thin\n");
}

TEST(OutputCases, ACallHasItsNameWhenItBegins) {
  std::vector<OutputEvent> events;
  OutputParser parser(With(ToolSyntax::kHermes), Tools());
  const std::string text = R"(<tool_call>{"arguments": {"city": "O"}, "name": "weather"})";
  for (const char c : text) parser.Feed({&c, 1}, events);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].kind == OutputEvent::Kind::kToolBegin, i == 0);
    EXPECT_EQ(events[i].tool_index, 0);
  }
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].text, "weather");
  EXPECT_EQ(
      Parse(With(ToolSyntax::kHermes), R"(<tool_call>{"name": "", "arguments": {}}</tool_call>)"),
      "text: <tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>\n");
}

TEST(OutputCases, ArgumentsThatAreAStringOfJson) {
  const auto call = [](const std::string& arguments) {
    return Parse(With(ToolSyntax::kHermes),
                 R"(<tool_call>{"name": "find", "arguments": )" + arguments + "}</tool_call>");
  };
  EXPECT_EQ(call(R"("{\"n\": 3}")"), "call 0 find: {\"n\": 3}\n");
  EXPECT_EQ(call(R"("")"), "call 0 find: {}\n");
  EXPECT_EQ(call("null"), "call 0 find: {}\n");
  EXPECT_EQ(call(R"("free text")"), "call 0 find: free text (cut)\n");
}

TEST(OutputCases, NamesAreTrimmedAndUnknownOnesAreCalls) {
  EXPECT_EQ(Parse(With(ToolSyntax::kGlm),
                  "<tool_call>get_time\n<arg_key>zone</arg_key>\n<arg_value>CET</arg_value>\n"
                  "</tool_call>"),
            "call 0 get_time: {\"zone\": \"CET\"}\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kQwenXml),
                  "<tool_call><function= get_time\n>\n</function></tool_call>"),
            "call 0 get_time: {}\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                  R"(<tool_call>{"name": "teleport\n", "arguments": {"to": 1}}</tool_call>)"),
            "call 0 teleport: {\"to\": 1}\n");
}

TEST(OutputCases, AChannelThatIsNoCallIsShown) {
  const OutputParserOptions options = With(ToolSyntax::kHarmony, ReasoningSyntax::kHarmony);
  EXPECT_EQ(Parse(options,
                  "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>"
                  "final<|message|>Hello.<|return|>"),
            "thought: Hm.\ntext: Hello.\n");
  EXPECT_EQ(Parse(options,
                  "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
                  "<|channel|>final<|message|>Hello."),
            "text: I look.Hello.\n");
  EXPECT_EQ(Parse(options, "Hello."), "text: Hello.\n");
  EXPECT_EQ(Parse(options, "<<|channel|>final<|message|>Hello."), "text: <Hello.\n");
  // A header that never ends.
  const std::string endless = "<|channel|>" + std::string(300, 'x') + "<|chan";
  EXPECT_EQ(Parse(options, endless), "text: " + endless + "\n");
}

TEST(OutputCases, EachOfSeveralCallsHasItsArguments) {
  const std::string both =
      "call 0 weather: {\"city\": \"Oslo\"}\ncall 1 weather: "
      "{\"city\": \"Rome\"}\n";
  const auto json = [](const char* city) {
    return std::string(R"({"name": "weather", "arguments": {"city": ")") + city + "\"}}";
  };
  const std::string oslo = json("Oslo");
  const std::string rome = json("Rome");
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                  "<tool_call>" + oslo + "</tool_call>\n<tool_call>" + rome + "</tool_call>"),
            both);
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes), "<tool_call>" + oslo + "\n" + rome + "</tool_call>"),
            both);
  EXPECT_EQ(Parse(With(ToolSyntax::kMistral), "[TOOL_CALLS] [" + oslo + ", " + rome + "]"), both);
  EXPECT_EQ(Parse(With(ToolSyntax::kNemotron), "<TOOLCALL>[" + oslo + ", " + rome + "]</TOOLCALL>"),
            both);
  EXPECT_EQ(Parse(With(ToolSyntax::kLlama3), oslo + "; " + rome), both);
}

TEST(OutputCases, ACallWithinThoughtsIsOneWhenTheyEndWithIt) {
  const std::string call = R"(<tool_call>{"name": "ping", "arguments": {}}</tool_call>)";
  const OutputParserOptions options = With(ToolSyntax::kHermes);
  EXPECT_EQ(Parse(options, "<think>need data " + call), "thought: need data \ncall 0 ping: {}\n");
  EXPECT_EQ(Parse(options, "<think>need data " + call + "\n" + call + "\n"),
            "thought: need data \ncall 0 ping: {}\ncall 1 ping: {}\n");
  // Thoughts that only speak of one.
  EXPECT_EQ(Parse(options, "<think>or " + call + "? No.</think>Hi"),
            "thought: or " + call + "? No.\ntext: Hi\n");
  EXPECT_EQ(Parse(options, "<think>" + call + "</think>Hi"), "thought: " + call + "\ntext: Hi\n");
  EXPECT_EQ(Parse(options, "<think><tool_call>{\"name\": \"pi</think>Hi"),
            "thought: <tool_call>{\"name\": \"pi\ntext: Hi\n");
  EXPECT_EQ(Parse(options, "<think><tool_call>{\"name\": \"pi"),
            "thought: <tool_call>{\"name\": \"pi\n");
  EXPECT_EQ(Parse(options, "<think>a " + call + " <tool_"), "thought: a " + call + " <tool_\n");
}

TEST(OutputCases, ThePromptOpenedTheThoughts) {
  OutputParserOptions options = With(ToolSyntax::kHermes);
  EXPECT_TRUE(PromptOpensReasoning(ReasoningSyntax::kThink, "<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(PromptOpensReasoning(ReasoningSyntax::kThink, "<think>\n\n</think>\n\n"));
  EXPECT_FALSE(PromptOpensReasoning(ReasoningSyntax::kNone, "<think>"));
  EXPECT_TRUE(PromptOpensReasoning(ReasoningSyntax::kHarmony,
                                   "<|start|>assistant<|channel|>analysis<|message|>"));
  options.starts_in_reasoning = true;
  EXPECT_EQ(Parse(options, "Hm.\n</think>\n\nHi"), "thought: Hm.\n\ntext: Hi\n");
  // Some models open them once more.
  EXPECT_EQ(Parse(options, "\n<think>Hm.</think>Hi"), "thought: Hm.\ntext: Hi\n");
  // Thoughts as text, with the mark that is in the prompt.
  options.parse_reasoning = false;
  EXPECT_EQ(Parse(options, "Hm.\n</think>\n\nHi"), "text: <think>Hm.\n</think>\n\nHi\n");
  options.starts_in_reasoning = false;
  EXPECT_EQ(Parse(options, "<think>Hm.\n</think>\n\nHi"), "text: <think>Hm.\n</think>\n\nHi\n");
}

TEST(OutputCases, ThinkingSwitchedOffIsAnAnswer) {
  // The prompt holds empty thoughts, so the state of this request is that of its prompt.
  OutputParserOptions options = With(ToolSyntax::kNone);
  options.starts_in_reasoning =
      PromptOpensReasoning(ReasoningSyntax::kThink, "assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(Parse(options, "The answer."), "text: The answer.\n");
}

TEST(OutputCases, ControlTokensAreNoText) {
  const OutputParserOptions options = With(ToolSyntax::kHarmony, ReasoningSyntax::kHarmony);
  EXPECT_EQ(Parse(options, "<|channel|>final<|message|>Hi<|end|>"), "text: Hi\n");
  EXPECT_EQ(Parse(options, "<|channel|>final<|message|>Hi<|end|><|start|>assist"), "text: Hi\n");
  EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                  R"(<tool_call>{"name": "ping", "arguments": {"a": 1}}</tool_c)"),
            "call 0 ping: {\"a\": 1}\n");
}

TEST(OutputCases, MalformedCallsLoseNoText) {
  const OutputParserOptions options = With(ToolSyntax::kHermes);
  // Before anything was given out: all of it is text.
  EXPECT_EQ(Parse(options, R"(a <tool_call>{'name': 'x'}</tool_call> b)"),
            "text: a <tool_call>{'name': 'x'}</tool_call> b\n");
  // A good call behind a bad one, and a mark right behind a mark.
  EXPECT_EQ(Parse(options, R"(<tool_call><tool_call>{"name": "ping"}</tool_call>)"),
            "text: <tool_call>\ncall 0 ping: {}\n");
  // Afterwards: the call ends where it turned bad.
  EXPECT_EQ(
      Parse(options, R"(<tool_call>{"name": "ping", "arguments": {"a": 1,, "b": 2}}</tool_call>c)"),
      "call 0 ping: {\"a\": 1, (cut)\ntext: , \"b\": 2}}c\n");
}

// Half a pair of UTF-16 is no character: a client that decodes it has text that is no UTF-8.
TEST(OutputCases, HalvesOfSurrogatePairsAreReplaced) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(\ud83d\ude00)", R"(\ud83d\ude00)"},
      {R"(a\uD83D)", R"(a\ufffd)"},
      {R"(\ude00b)", R"(\ufffdb)"},
      {R"(\ud83d\ud83d\ude00\ude00)", R"(\ufffd\ud83d\ude00\ufffd)"},
      {R"(\ud83dx\ude00)", R"(\ufffdx\ufffd)"},
      {R"(\ud83d\n\u00e9)", R"(\ufffd\n\u00e9)"},
      {R"(\ud83d\u00e9)", R"(\ufffd\u00e9)"},
  };
  for (const auto& [written, want] : cases) {
    const std::string value = R"({"command": ")" + std::string(written) + "\"}";
    const std::string mended = R"({"command": ")" + std::string(want) + "\"}";
    const std::string expected = "call 0 shell: " + mended + "\n";
    EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                    R"(<tool_call>{"name": "shell", "arguments": )" + value + "}</tool_call>"),
              expected);
    EXPECT_EQ(Parse(With(ToolSyntax::kMistral), "[TOOL_CALLS]shell[ARGS]" + value), expected);
    EXPECT_EQ(
        Parse(With(ToolSyntax::kPythonic), "<|tool_call_start|>[shell(command=\"" +
                                               std::string(written) + "\")]<|tool_call_end|>"),
        expected);
    // An object in a string: its escapes are escaped.
    const std::string quoted = OrderedJson(value).dump();
    EXPECT_EQ(Parse(With(ToolSyntax::kHermes),
                    R"(<tool_call>{"name": "shell", "arguments": )" + quoted + "}</tool_call>"),
              expected);
    // A key, and as a name.
    EXPECT_EQ(Parse(With(ToolSyntax::kHermes), R"(<tool_call>{"name": "shell", "arguments": {")" +
                                                   std::string(written) + R"(": 1}}</tool_call>)"),
              "call 0 shell: {\"" + std::string(want) + "\": 1}\n");
  }
}

}  // namespace
}  // namespace tq

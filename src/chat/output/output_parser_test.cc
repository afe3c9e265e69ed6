// The parser as a whole: every syntax, how much it holds back, how long it takes.
#include "chat/output/output_parser.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chat/output/parse_all.h"

namespace tq {
namespace {

const std::vector<ToolSpec>& Tools() {
  static const auto* const kTools =
      new std::vector<ToolSpec>{MakeTool("f", R"({"s": {"type": "string"}, "n": {"type": "integer"},
                        "x": {"type": "number"}, "b": {"type": "boolean"},
                        "o": {"type": "object"}, "a": {"type": "array"},
                        "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                        "m": {"type": ["string", "null"]}, "e": {"enum": ["one", "two"]},
                        "r": {"$ref": "#/properties/n"}, "any": {}})"),
                                MakeTool("g", "{}")};
  return *kTools;
}

OutputParserOptions With(ToolSyntax tools, ReasoningSyntax reasoning = ReasoningSyntax::kThink) {
  OutputParserOptions options;
  options.syntax = {tools, reasoning};
  return options;
}

std::string Parse(ToolSyntax syntax, std::string_view text) {
  const ReasoningSyntax reasoning = syntax == ToolSyntax::kHarmony || syntax == ToolSyntax::kMuse
                                        ? ReasoningSyntax::kHarmony
                                        : ReasoningSyntax::kThink;
  OutputParserOptions held = With(syntax, reasoning);
  held.stream_arguments = false;
  const std::string shown = Show(ParseAll(With(syntax, reasoning), Tools(), text));
  EXPECT_EQ(Show(ParseAll(held, Tools(), text)), shown) << text;
  return shown;
}

// One call of each kind of argument in the notation of a syntax, and two calls.
struct SyntaxCase {
  ToolSyntax syntax;
  const char* text;
  const char* events;
};

const SyntaxCase kSyntaxCases[] = {
    {ToolSyntax::kHermes,
     "a\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"\\u00e9\"}}\n</tool_call>",
     "text: a\n\ncall 0 f: {\"s\": \"\\u00e9\"}\n"},
    {ToolSyntax::kHermes,
     "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": "
     "{}}}</tool_call>",
     "call 0 f: {}\n"},
    {ToolSyntax::kHermes,
     "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a\n\tb\"}}</tool_call>",
     "call 0 f: {\"s\": \"a\\n\\tb\"}\n"},
    {ToolSyntax::kSeed,
     "<seed:tool_call>\n<function=f>\n<parameter=n>7</parameter>\n</function>\n</seed:tool_call>",
     "call 0 f: {\"n\": 7}\n"},
    {ToolSyntax::kMuse,
     " to=self<|message|>Hm.<|eom|><|start|>assistant to=f<|message|><atem:function_calls>\n"
     "<atem:invoke name=\"f\">\n<atem:parameter name=\"s\">a</atem:parameter>\n"
     "</atem:invoke>\n</atem:function_calls><|eom|>",
     "thought: Hm.\ncall 0 f: {\"s\": \"a\"}\n"},
    {ToolSyntax::kDeepSeek,
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "begin\xEF\xBD\x9C>"
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "call\xE2\x96\x81"
     "begin\xEF\xBD\x9C>function"
     "<\xEF\xBD\x9Ctool\xE2\x96\x81sep\xEF\xBD\x9C>f\n```json\n{\"s\": \"a\"}\n```"
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "call\xE2\x96\x81"
     "end\xEF\xBD\x9C>\n"
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "call\xE2\x96\x81"
     "begin\xEF\xBD\x9C>g"
     "<\xEF\xBD\x9Ctool\xE2\x96\x81sep\xEF\xBD\x9C>{}"
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "call\xE2\x96\x81"
     "end\xEF\xBD\x9C>"
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     "call 0 f: {\"s\": \"a\"}\ncall 1 g: {}\n"},
    {ToolSyntax::kDeepSeekXml,
     "<\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9C"
     "function_calls>\n"
     "<\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9Cinvoke name=\"f\">\n"
     "<\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9Cparameter name=\"any\" string=\"true\">5"
     "</\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9Cparameter>\n"
     "<\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9Cparameter name=\"n\" string=\"false\">5"
     "</\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9Cparameter>\n"
     "</\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9Cinvoke>\n"
     "</\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9C"
     "function_calls>",
     "call 0 f: {\"any\": \"5\", \"n\": 5}\n"},
    {ToolSyntax::kKimi,
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
     "{\"s\": \"a\"}<|tool_call_end|><|tool_call_begin|>functions.g:1"
     "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
     "call 0 f [functions.f:0]: {\"s\": \"a\"}\ncall 1 g [functions.g:1]: {}\n"},
    {ToolSyntax::kKimiXml,
     "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>"
     "<|open|>argument key=\"s\" type=\"string\"<|sep|>5<|close|>argument<|sep|>"
     "<|open|>argument key=\"any\" type=\"number\"<|sep|>5<|close|>argument<|sep|>"
     "<|close|>call<|sep|><|close|>tools<|sep|>",
     "call 0 f: {\"s\": \"5\", \"any\": 5}\n"},
    {ToolSyntax::kMistral,
     "Sure.[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{\"n\": 1}[TOOL_CALLS]g[ARGS]{}",
     "text: Sure.\ncall 0 f [abc123def]: {\"n\": 1}\ncall 1 g: {}\n"},
    {ToolSyntax::kMistral,
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"n\": 1}, \"id\": \"abcdef123\"}]",
     "call 0 f: {\"n\": 1}\n"},
    {ToolSyntax::kLlama3, "{\"name\": \"f\", \"parameters\": {\"n\": 1}}",
     "call 0 f: {\"n\": 1}\n"},
    {ToolSyntax::kLlama3, "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"n\": 1}}",
     "call 0 f: {\"n\": 1}\n"},
    {ToolSyntax::kLlama3, "<|python_tag|>f.call(s=\"a\")", "call 0 f: {\"s\": \"a\"}\n"},
    {ToolSyntax::kLlama3, "{\"name\": \"Ann\", \"parameters\": {\"n\": 1}}",
     "text: {\"name\": \"Ann\", \"parameters\": {\"n\": 1}}\n"},
    {ToolSyntax::kLlama3, "{\"answer\": 42}", "text: {\"answer\": 42}\n"},
    {ToolSyntax::kGranite, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"n\": 1}}]",
     "call 0 f: {\"n\": 1}\n"},
    {ToolSyntax::kPhi, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"n\": 1}}]<|/tool_call|>",
     "call 0 f: {\"n\": 1}\n"},
    {ToolSyntax::kCommand,
     "<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": "
     "{\"n\": 1}}\n]<|END_ACTION|>",
     "call 0 f [0]: {\"n\": 1}\n"},
    {ToolSyntax::kCommand, "<|START_RESPONSE|>Hi<|END_RESPONSE|>", "text: Hi\n"},
    {ToolSyntax::kLlama4, "[f(s='a', n=1_000), g()]",
     "call 0 f: {\"s\": \"a\", \"n\": 1000}\ncall 1 g: {}\n"},
    {ToolSyntax::kLlama4, "<|python_start|>[g()]<|python_end|>", "call 0 g: {}\n"},
    {ToolSyntax::kLlama4, "[1] is the source, [f(x)] is not a call",
     "text: [1] is the source, [f(x)] is not a call\n"},
    {ToolSyntax::kPythonic,
     "<|tool_call_start|>[f(s=\"\"\"a \"q\" b\"\"\", x=.5, b=True, o={'k': (1, None)}, a=[])]"
     "<|tool_call_end|>",
     "call 0 f: {\"s\": \"a \\\"q\\\" b\", \"x\": 0.5, \"b\": true, \"o\": {\"k\": [1, null]}, "
     "\"a\": []}\n"},
    {ToolSyntax::kPythonic, "<|tool_call_start|>[f(s='it\\'s \\n \\x41 \\u00e9')]<|tool_call_end|>",
     "call 0 f: {\"s\": \"it's \\n \\u0041 \\u00e9\"}\n"},
    {ToolSyntax::kGemma4,
     "<|tool_call>call:f{o:{k:<|\"|>a<|\"|>},s:<|\"|>x\n\"<|\"|>,a:[1,two words]}<tool_call|>",
     "call 0 f: {\"o\": {\"k\": \"a\"}, \"s\": \"x\\n\\\"\", \"a\": [1, \"two words\"]}\n"},
    {ToolSyntax::kHarmony,
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.f <|constrain|>json<|message|>{\"s\": \"a\"}<|call|>",
     "thought: Hm.\ncall 0 f: {\"s\": \"a\"}\n"},
    {ToolSyntax::kHarmony,
     " to=functions.g<|channel|>commentary json<|message|><|call|><|start|>assistant<|channel|>"
     "commentary to=functions.f<|message|>{\"n\": 1}",
     "call 0 g: {}\ncall 1 f: {\"n\": 1}\n"},
    {ToolSyntax::kHarmony, "<|channel|>commentary to=functions.g <|constrain|>json<|message|>",
     "call 0 g: {}\n"},
};

// TC-16: cut at any place, in single bytes and in one piece (parse_all.h).
TEST(OutputParser, EverySyntax) {
  for (const SyntaxCase& entry : kSyntaxCases) {
    EXPECT_EQ(Parse(entry.syntax, entry.text), entry.events) << entry.text;
  }
}

TEST(OutputParser, ArgumentsHaveTheTypesOfTheSchema) {
  const auto argument = [](const char* key, const std::string& value) {
    std::string text = "<tool_call><function=f><parameter=";
    text += std::string(key) + ">\n" + value + "\n</parameter></function></tool_call>";
    const std::string shown = Parse(ToolSyntax::kQwenXml, text);
    const std::string before = std::string("call 0 f: {\"") + key + "\": ";
    return shown.starts_with(before) ? shown.substr(before.size(), shown.size() - before.size() - 2)
                                     : "no call";
  };
  EXPECT_EQ(argument("s", "5"), "\"5\"");
  EXPECT_EQ(argument("s", "a \\ \"q\" <b> </parameter"), "\"a \\\\ \\\"q\\\" <b> </parameter\"");
  EXPECT_EQ(argument("s", "\n\ntwo\n\n"), "\"\\n\\ntwo\\n\\n\"");
  EXPECT_EQ(argument("s", ""), "\"\"");
  EXPECT_EQ(argument("s", "null"), "null");
  EXPECT_EQ(argument("s", "nullable"), "\"nullable\"");
  EXPECT_EQ(argument("s", "nul"), "\"nul\"");
  EXPECT_EQ(argument("s", "<![CDATA[x]]>"), "\"<![CDATA[x]]>\"");
  EXPECT_EQ(argument("n", "12345678901234567890123"), "12345678901234567890123");
  EXPECT_EQ(argument("n", "3.0"), "3");
  EXPECT_EQ(argument("n", "-0"), "-0");
  EXPECT_EQ(argument("n", "three"), "no call");
  EXPECT_EQ(argument("n", "007"), "no call");
  EXPECT_EQ(argument("x", "-1.5e3"), "-1.5e3");
  EXPECT_EQ(argument("x", "NaN"), "no call");
  EXPECT_EQ(argument("b", "False"), "false");
  EXPECT_EQ(argument("b", "TRUE"), "true");
  EXPECT_EQ(argument("o", "{\"k\": [1, {}]}"), "{\"k\": [1, {}]}");
  EXPECT_EQ(argument("o", "{'k': True}"), "{\"k\": true}");
  EXPECT_EQ(argument("o", "{broken"), "\"{broken\"");
  EXPECT_EQ(argument("a", "[1, 2"), "\"[1, 2\"");
  EXPECT_EQ(argument("u", "7"), "7");
  EXPECT_EQ(argument("u", "seven"), "\"seven\"");
  EXPECT_EQ(argument("m", "null"), "null");
  EXPECT_EQ(argument("e", "one"), "\"one\"");
  EXPECT_EQ(argument("r", "8"), "8");
  EXPECT_EQ(argument("any", "9"), "\"9\"");
  EXPECT_EQ(argument("unknown", "9"), "\"9\"");
}

TEST(OutputParser, OtherSyntaxesTakeValuesWithoutTypeAsJson) {
  EXPECT_EQ(Parse(ToolSyntax::kGlm,
                  "<tool_call>f<arg_key>any</arg_key><arg_value>[1, 'a']"
                  "</arg_value><arg_key>s</arg_key><arg_value>null</arg_value>"
                  "</tool_call>"),
            "call 0 f: {\"any\": [1, \"a\"], \"s\": \"null\"}\n");
}

// Prose goes out at once; what may be a mark waits, and nothing more.
TEST(OutputParser, HoldsBackOnlyWhatMayBeAMark) {
  OutputParser parser(With(ToolSyntax::kHermes), Tools());
  std::vector<OutputEvent> events;
  const auto fed = [&](std::string_view text) {
    events.clear();
    parser.Feed(text, events);
    std::string shown;
    for (const OutputEvent& event : events) shown += event.text;
    return shown;
  };
  EXPECT_EQ(fed("Hello"), "Hello");
  EXPECT_EQ(fed(" a < b"), " a < b");
  EXPECT_EQ(fed(" <tool_"), " ");
  EXPECT_EQ(fed("box>"), "<tool_box>");
  EXPECT_EQ(fed("<tool_call>{\"name\": \"f\","), "");
  EXPECT_EQ(fed(" \"arguments\": {\"s\":"), "");
  EXPECT_TRUE(parser.in_tool_call());
  EXPECT_EQ(fed(" \""), "f{\"s\": \"");
  EXPECT_TRUE(parser.made_tool_calls());
  EXPECT_EQ(fed("as it comes"), "as it comes");
  EXPECT_EQ(fed("\"}"), "\"}");
  EXPECT_EQ(fed("}</tool_call>"), "");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, OutputEvent::Kind::kToolEnd);
  EXPECT_FALSE(parser.in_tool_call());
}

TEST(OutputParser, KnowsWhetherItIsInThoughts) {
  OutputParserOptions options = With(ToolSyntax::kHermes);
  std::vector<OutputEvent> events;
  OutputParser open(options, Tools());
  EXPECT_FALSE(open.in_reasoning());
  open.Feed("<think>a", events);
  EXPECT_TRUE(open.in_reasoning());
  open.Feed("</think>", events);
  EXPECT_FALSE(open.in_reasoning());
  options.starts_in_reasoning = true;
  EXPECT_TRUE(OutputParser(options, Tools()).in_reasoning());
}

TEST(OutputParser, StringsOfTagsComeAsTheyAreWritten) {
  OutputParser parser(With(ToolSyntax::kQwenXml), Tools());
  std::vector<OutputEvent> events;
  parser.Feed("<tool_call>\n<function=f>\n<parameter=s>\nfirst line\nsecond", events);
  EXPECT_EQ(Show(events), "call 0 f: {\"s\": \"first line\\nsecond");
}

TEST(OutputParser, CharactersStayWhole) {
  OutputParser parser(With(ToolSyntax::kHermes), Tools());
  std::vector<OutputEvent> events;
  parser.Feed("a\xF0\x9F", events);
  EXPECT_EQ(Show(events), "text: a\n");
  parser.Feed("\x98\x80", events);
  parser.Feed("\xC3", events);
  parser.Finish(events);
  EXPECT_EQ(Show(events), "text: a\xF0\x9F\x98\x80\xEF\xBF\xBD\n");
  EXPECT_EQ(Parse(ToolSyntax::kHermes,
                  "\xFF\xFF"
                  "A\xED\xA0\x80"),
            "text: \xEF\xBF\xBD\xEF\xBF\xBD"
            "A\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\n");
}

TEST(OutputParser, SpaceBetweenCallsIsDroppedOnRequest) {
  const std::string text =
      "\n\n<tool_call>{\"name\": \"g\"}</tool_call>\n"
      "<tool_call>{\"name\": \"g\"}</tool_call>\n";
  OutputParserOptions options = With(ToolSyntax::kHermes);
  EXPECT_EQ(Show(ParseAll(options, Tools(), text)), "call 0 g: {}\ncall 1 g: {}\n");
  options.keep_space_between_calls = true;
  EXPECT_EQ(Show(ParseAll(options, Tools(), text)),
            "text: \n\n\ncall 0 g: {}\ntext: \n\ncall 1 g: {}\ntext: \n\n");
  EXPECT_EQ(Parse(ToolSyntax::kHermes, "\n\n"), "text: \n\n\n");
}

// Marks and pieces of calls in any order: no crash, calls are in order, cuts change nothing.
TEST(OutputParser, AnyOrderOfMarks) {
  constexpr const char* kPieces[] = {"a",
                                     " ",
                                     "\n",
                                     "{",
                                     "}",
                                     "[",
                                     "]",
                                     "(",
                                     ")",
                                     "\"",
                                     "'",
                                     ":",
                                     ",",
                                     "=",
                                     "f",
                                     "g",
                                     "s",
                                     "1",
                                     "\\",
                                     "{\"name\": \"f\"",
                                     ", \"arguments\": {",
                                     "\"s\": \"x\"",
                                     "null",
                                     "f(s=",
                                     "True",
                                     "functions.f:0",
                                     "function",
                                     "```json",
                                     " to=functions.f",
                                     "assistant",
                                     "analysis",
                                     "final",
                                     "\xC3\xA9",
                                     "\xF0\x9F",
                                     "call:",
                                     "<think>",
                                     "</think>"};
  uint32_t state = 1;
  const auto next = [&state](size_t below) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % below;
  };
  for (int s = 0; s <= static_cast<int>(ToolSyntax::kHarmony); ++s) {
    OutputParserOptions options = With(static_cast<ToolSyntax>(s));
    if (options.syntax.tools == ToolSyntax::kHarmony || options.syntax.tools == ToolSyntax::kMuse) {
      options.syntax.reasoning = ReasoningSyntax::kHarmony;
    }
    const std::vector<std::string_view> marks = SyntaxMarks(options.syntax);
    for (int round = 0; round < 150; ++round) {
      std::string text;
      for (size_t i = next(24); i > 0; --i) {
        text += !marks.empty() && next(2) == 0
                    ? marks[next(marks.size())]
                    : std::string_view(kPieces[next(std::size(kPieces))]);
      }
      options.stream_arguments = next(2) == 0;
      options.starts_in_reasoning = next(4) == 0;
      options.parse_reasoning = next(4) != 0;
      const std::vector<OutputEvent> whole = ParsePieces(options, Tools(), text, {});
      std::vector<size_t> every;
      for (size_t cut = 1; cut < text.size(); ++cut) every.push_back(cut);
      ASSERT_EQ(Show(ParsePieces(options, Tools(), text, every)), Show(whole)) << text;
      int calls = 0;
      bool open = false;
      for (const OutputEvent& event : whole) {
        const bool begins = event.kind == OutputEvent::Kind::kToolBegin;
        const bool is_call = begins || event.kind == OutputEvent::Kind::kToolArguments ||
                             event.kind == OutputEvent::Kind::kToolEnd;
        ASSERT_EQ(is_call, begins || open) << text;
        if (begins) {
          ASSERT_FALSE(open || event.text.empty()) << text;
          ++calls;
        }
        if (is_call) {
          ASSERT_EQ(event.tool_index, calls - 1) << text;
        }
        open = is_call && event.kind != OutputEvent::Kind::kToolEnd;
      }
      ASSERT_FALSE(open) << text;
    }
  }
}

// Text that nearly is something, much of it: linear time, and nothing is lost.
TEST(OutputParser, TakesLinearTime) {
  constexpr size_t kBytes = 1 << 20;
  const auto run = [](ToolSyntax syntax, std::string_view prefix, std::string_view unit,
                      size_t bytes) {
    std::string text(prefix);
    while (text.size() < bytes) text += unit;
    OutputParser parser(With(syntax), Tools());
    std::vector<OutputEvent> events;
    const auto start = std::chrono::steady_clock::now();
    for (size_t at = 0; at < text.size(); at += 4096) {
      parser.Feed(std::string_view(text).substr(at, 4096), events);
    }
    parser.Finish(events);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    size_t total = 0;
    for (const OutputEvent& event : events) {
      if (event.kind == OutputEvent::Kind::kText || event.kind == OutputEvent::Kind::kReasoning) {
        total += event.text.size();
      }
    }
    if (!parser.made_tool_calls()) {
      EXPECT_EQ(total, text.size()) << unit;
    }
    return seconds.count();
  };
  for (const auto& [syntax, prefix, unit] :
       {std::tuple(ToolSyntax::kHermes, "", "<"),
        std::tuple(ToolSyntax::kHermes, "", "<tool_call>"),
        std::tuple(ToolSyntax::kHermes, "", "<tool_call>{\"name\": \"f\""),
        std::tuple(ToolSyntax::kHermes, "<tool_call>{\"x\": ", "["),
        std::tuple(ToolSyntax::kHermes, "<tool_call>{\"x\": \"", " "),
        std::tuple(ToolSyntax::kGlm, "<tool_call>f a=1", " b=2"),
        std::tuple(ToolSyntax::kQwenXml, "<tool_call><function=f><parameter=n>", " "),
        std::tuple(ToolSyntax::kLlama4, "[f(s=", "["),
        std::tuple(ToolSyntax::kMistral, "", "[TOOL_CALLS]")}) {
    EXPECT_LT(run(syntax, prefix, unit, kBytes), 2.0) << unit;
  }
}

}  // namespace
}  // namespace tq

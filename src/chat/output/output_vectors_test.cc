// Answers of models and what they mean: tests/data/output_vectors.json. Where ours differs on
// purpose, the case says so ("differs").
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "chat/output/output_parser.h"
#include "chat/output/parse_all.h"
#include "chat/output/tool_greedy.h"

namespace tq {
namespace {

const OrderedJson& Vectors() {
  static const auto* const kVectors = [] {
    const auto text = ReadTextFile(TQ_SOURCE_DIR "/tests/data/output_vectors.json");
    return new OrderedJson(*ParseOrderedJson(text.ok() ? *text : "{}", "output_vectors.json"));
  }();
  return *kVectors;
}

std::vector<ToolSpec> Tools() {
  std::vector<ToolSpec> tools;
  for (const OrderedJson& entry : Vectors()["tools"]) {
    ToolSpec tool;
    tool.function = entry["function"];
    tool.name = tool.function["name"].get<std::string>();
    tools.push_back(std::move(tool));
  }
  return tools;
}

ToolSyntax Syntax(const OrderedJson& parser) {
  ToolSyntax syntax = ToolSyntax::kNone;
  EXPECT_TRUE(ParseToolSyntax(parser.get<std::string>(), &syntax)) << parser;
  return syntax;
}

// [["content_delta", text], ["tool_call", {...}], ...] with arguments as values.
OrderedJson AsVector(const std::vector<OutputEvent>& events) {
  OrderedJson all = OrderedJson::array();
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case OutputEvent::Kind::kText:
        all.push_back({"content_delta", event.text});
        break;
      case OutputEvent::Kind::kReasoning:
        all.push_back({"reasoning_delta", event.text});
        break;
      case OutputEvent::Kind::kToolBegin:
        all.push_back({"tool_call", {{"name", event.text}}});
        if (!event.tool_id.empty()) all.back()[1]["id"] = event.tool_id;
        break;
      case OutputEvent::Kind::kToolArguments: {
        const auto arguments = ParseOrderedJson(event.text, "arguments");
        EXPECT_TRUE(arguments.ok()) << event.text;
        all.back()[1]["arguments"] = arguments.ok() ? *arguments : OrderedJson(event.text);
        break;
      }
      case OutputEvent::Kind::kToolEnd:
        break;
    }
  }
  return all;
}

// Equal but for the order of keys.
bool Same(const OrderedJson& a, const OrderedJson& b) {
  return Json::parse(a.dump()) == Json::parse(b.dump());
}

TEST(OutputVectors, CallsOfEachSyntax) {
  const std::vector<ToolSpec> tools = Tools();
  std::set<ToolSyntax> seen;
  for (const OrderedJson& entry : Vectors()["parsers"]) {
    const std::string start = entry["start"].get<std::string>();
    std::string text = entry["text"].get<std::string>();
    if (!text.starts_with(start)) text = start + text + entry["end"].get<std::string>();
    SCOPED_TRACE(entry["parser"].get<std::string>() + " " + text);
    OutputParserOptions options;
    options.syntax.tools = Syntax(entry["parser"]);
    options.stream_arguments = false;
    seen.insert(options.syntax.tools);
    OrderedJson want = OrderedJson::array();
    if (entry["calls"].is_null()) {
      want.push_back({"content_delta", text});
    } else {
      for (const OrderedJson& call : entry["calls"]) want.push_back({"tool_call", call});
    }
    const OrderedJson held = AsVector(ParseAll(options, tools, text));
    const bool has_ids = options.syntax.tools == ToolSyntax::kKimi;
    if (!has_ids || entry["calls"].is_null() || entry["calls"][0].contains("id")) {
      EXPECT_TRUE(Same(held, want)) << held.dump() << "\n" << want.dump();
    }
    options.stream_arguments = true;
    const std::vector<OutputEvent> events = ParseAll(options, tools, text);
    if (!entry["calls"].is_null()) {
      EXPECT_TRUE(Same(AsVector(events), held));
    }
  }
  EXPECT_GE(seen.size(), 11u);
}

TEST(OutputVectors, WholeAnswers) {
  const std::vector<ToolSpec> tools = Tools();
  for (const OrderedJson& entry : Vectors()["router"]) {
    const std::string name = entry["name"].get<std::string>();
    SCOPED_TRACE(name);
    OutputParserOptions options;
    options.syntax = {Syntax(entry["parser"]), ReasoningSyntax::kThink};
    options.starts_in_reasoning = entry["in_reasoning"].get<bool>();
    options.parse_tools = entry["tools"].get<bool>();
    options.stream_arguments = false;
    options.keep_space_between_calls = true;
    const std::string text = entry["text"].get<std::string>();
    OrderedJson events = AsVector(ParseAll(options, tools, text));
    EXPECT_TRUE(Same(events, entry["events"])) << events.dump() << "\n" << entry["events"].dump();
    // A call that lacks its closing mark is given out all the same when arguments are streamed.
    options.stream_arguments = true;
    const OrderedJson streamed = AsVector(ParseAll(options, tools, text));
    EXPECT_EQ(Same(streamed, events), name != "tool_unclosed") << streamed.dump();
  }
}

TEST(OutputVectors, TemplatesShowTheSyntax) {
  for (const OrderedJson& entry : Vectors()["detect"]) {
    const std::string text = entry["template"].get<std::string>();
    const ToolSyntax want = entry["parser"].is_null() ? ToolSyntax::kNone : Syntax(entry["parser"]);
    EXPECT_EQ(ToolSyntaxName(DetectOutputSyntax(text).tools), ToolSyntaxName(want)) << text;
  }
  EXPECT_EQ(DetectOutputSyntax("<arg_key>", "qwen3_coder").tools, ToolSyntax::kQwenXml);
  EXPECT_EQ(DetectOutputSyntax("<arg_key>", "of tomorrow").tools, ToolSyntax::kGlm);
}

TEST(OutputVectors, SyntaxIsGreedy) {
  for (const OrderedJson& entry : Vectors()["greedy"]) {
    const std::string text = entry["text"].get<std::string>();
    ToolSyntaxTracker tracker("<tool_call>", "</tool_call>");
    for (int round = 0; round < 2; ++round) {
      std::string flags;
      for (const char c : text) {
        tracker.Feed({&c, 1});
        flags += tracker.next_is_syntax() ? '1' : '0';
      }
      EXPECT_EQ(flags, entry["greedy_after_char"].get<std::string>()) << text;
      tracker.Reset();
    }
  }
}

// '1' where the token behind a character is syntax.
std::string SyntaxOf(ToolSyntax syntax, const std::string& text) {
  ToolSyntaxTracker tracker(syntax);
  std::string flags;
  for (const char c : text) {
    tracker.Feed({&c, 1});
    flags += tracker.next_is_syntax() ? '1' : '0';
  }
  return flags;
}

// The pieces are syntax in turn: outside, inside, a text, inside, ... Where a piece ends, what is
// behind its last byte is of the next one.
void ExpectPieces(ToolSyntax syntax, const std::vector<std::string>& free_and_syntax) {
  std::string text;
  std::string want;
  for (size_t i = 0; i < free_and_syntax.size(); ++i) {
    const std::string& piece = free_and_syntax[i];
    text += piece;
    want += std::string(piece.size() - 1, i % 2 == 1 ? '1' : '0');
    want += i % 2 == 1 ? '0' : '1';
  }
  want.pop_back();
  std::string found = SyntaxOf(syntax, text);
  found.pop_back();
  EXPECT_EQ(found, want) << ToolSyntaxName(syntax) << "\n" << text;
}

TEST(OutputVectors, SyntaxIsGreedyInEveryNotation) {
  ExpectPieces(ToolSyntax::kHermes,
               {"a {\"b\": <tool_call>", "\n{\"name\": \"", "f\"", ", \"arguments\": {\"k\": \"",
                "v\\\"}\"", ", \"n\": [1, \"", "x\"", "]}}\n</tool_call>", "b \"c\""});
  // A text in tags is free up to the second byte of its closing tag.
  ExpectPieces(ToolSyntax::kQwenXml,
               {"a<tool_call>", "\n<function=f>\n<parameter=k>", "\nx \"y < z\n</",
                "parameter>\n<parameter=l>", "1</", "parameter></function></tool_call>", "b"});
  ExpectPieces(ToolSyntax::kGlm, {"<tool_call>", "f<arg_key>k</arg_key>\n<arg_value>", "v</",
                                  "arg_value></tool_call>", "b"});
  ExpectPieces(ToolSyntax::kMiniMax,
               {"<minimax:tool_call>", "<invoke name=\"f\"><parameter name=\"k\">", "v\"</",
                "parameter></invoke></minimax:tool_call>", "b"});
  ExpectPieces(ToolSyntax::kMiniCpm,
               {"a<function name=\"", "f\"><param name=\"k\">", "v</", "param></function>", "b"});
  ExpectPieces(ToolSyntax::kKimiXml,
               {"<|open|>tools<|sep|>",
                "<|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"k\" "
                "type=\"string\"<|sep|>",
                "v<|", "close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>", "b"});
  ExpectPieces(ToolSyntax::kKimi, {"<|tool_calls_section_begin|>",
                                   "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
                                   "{\"k\": \"",
                                   "v\"", "}<|tool_call_end|><|tool_calls_section_end|>", "b"});
  // Without a mark at the end, the JSON's own counts.
  ExpectPieces(ToolSyntax::kMistral, {"a[TOOL_CALLS]", "f[ARGS]{\"k\": \"", "v\"", "}",
                                      "[TOOL_CALLS]", "[{\"name\": \"", "f\"", "}]", "b"});
  ExpectPieces(ToolSyntax::kLlama3, {"\n{", "\"name\": \"", "f\"", "}", "; {", "\"name\": \"",
                                     "f\"", "}", "b {\"c\": 1}"});
  ExpectPieces(ToolSyntax::kHarmony, {"<|channel|>commentary to=functions.",
                                      "f <|constrain|>json<|message|>{\"k\": \"", "v\"", "}", "b"});
  ExpectPieces(ToolSyntax::kPythonic, {"<|tool_call_start|>", "[f(k=\"", "v\"", ", l='", "w\"'",
                                       ")]<|tool_call_end|>", "b"});
  ExpectPieces(ToolSyntax::kLlama4, {"[", "f(k=\"", "v]\"", ", n=[1])]", "b"});
  ExpectPieces(ToolSyntax::kGemma4,
               {"<|tool_call>", "call:f{k:<|\"|>", "say \"x\" <|", "\"|>,n:1}<tool_call|>", "b"});
  EXPECT_EQ(SyntaxOf(ToolSyntax::kNone, "<tool_call>{"), std::string(12, '0'));
}

}  // namespace
}  // namespace tq

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

}  // namespace
}  // namespace tq

// Grammars of calls, syntax by syntax: what they allow is what the parser reads as calls of the
// offered tools, and the texts that models are taught are among it.
#include "chat/output/tool_grammar.h"

#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chat/output/output_parser.h"
#include "grammar/grammar_compiler.h"
#include "grammar/mask_bits.h"

namespace tq {
namespace {

// The bytes, an end, and marks that are special tokens.
class MarkTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kEnd = 256;
  explicit MarkTokenizer(std::vector<std::string_view> marks) : marks_(std::move(marks)) {}

  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      size_t size = 1;
      int32_t id = static_cast<uint8_t>(text.front());
      for (size_t i = 0; i < marks_.size(); ++i) {
        if (marks_[i].size() <= size || !text.starts_with(marks_[i])) continue;
        size = marks_[i].size();
        id = kEnd + 1 + static_cast<int32_t>(i);
      }
      ids.push_back(id);
      text.remove_prefix(size);
    }
    return ids;
  }
  std::string Decode(std::span<const int32_t> ids, bool) const override {
    std::string out;
    for (const int32_t id : ids) out += IsSpecial(id) ? std::string(TokenText(id)) : TokenBytes(id);
    return out;
  }
  std::unique_ptr<DecodeStream> StartDecode(bool) const override { return nullptr; }
  std::string TokenBytes(int32_t id) const override {
    return id < kEnd ? std::string(1, static_cast<char>(id)) : "";
  }
  int32_t vocab_size() const override { return kEnd + 1 + static_cast<int32_t>(marks_.size()); }
  bool IsSpecial(int32_t id) const override { return id >= kEnd; }
  std::string_view TokenText(int32_t id) const override {
    return id <= kEnd ? "" : marks_[static_cast<size_t>(id - kEnd - 1)];
  }
  int32_t TokenId(std::string_view content) const override {
    for (size_t i = 0; i < marks_.size(); ++i) {
      if (marks_[i] == content) return kEnd + 1 + static_cast<int32_t>(i);
    }
    return -1;
  }

 private:
  std::vector<std::string_view> marks_;
};

std::vector<ToolSpec> Tools() {
  const auto tool = [](const std::string& name, const char* parameters) {
    ToolSpec spec;
    spec.name = name;
    spec.function = {{"name", name}, {"parameters", OrderedJson::parse(parameters)}};
    return spec;
  };
  return {tool("look", R"({"type": "object", "properties": {
              "at": {"type": "string"}, "far": {"type": "integer"},
              "how": {"type": "string", "enum": ["up", "down"]},
              "on": {"type": "array", "items": {"type": "boolean"}}},
              "required": ["at", "how"]})"),
          tool("stop", R"({"type": "object", "properties": {}})"),
          tool("add_2", R"({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}},
              "required": ["n"], "$defs": {"n": {"type": "boolean"}}})")};
}

constexpr const char* kD = "\xEF\xBD\x9C";  // the bar of DeepSeek's marks

std::string DeepSeek(const char* words) {
  std::string out = "<";
  out += kD;
  for (const char* c = words; *c != '\0'; ++c)
    out += *c == ' ' ? "\xE2\x96\x81" : std::string(1, *c);
  return out + kD + ">";
}

std::string Dsml(const std::string& tag, bool closes = false) {
  return std::string(closes ? "</" : "<") + kD + "DSML" + kD + tag;
}

struct Sample {
  ToolSyntax syntax;
  std::string good;  // two calls where there may be several
  bool one = false;  // it is a single one
};

const std::string kLook = R"({"at": "sky", "how": "up", "on": [true]})";

std::vector<Sample> Samples() {
  const std::string param = Dsml("parameter name=\"");
  return {
      {ToolSyntax::kHermes,
       "<tool_call>\n{\"name\": \"look\", \"arguments\": " + kLook +
           "}\n</tool_call>\n<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>"},
      {ToolSyntax::kQwenXml,
       "<tool_call>\n<function=look>\n<parameter=at>\na <b> & {\n</parameter>\n<parameter=far>\n3\n"
       "</parameter>\n<parameter=how>\ndown\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"
       "<function=stop>\n</function>\n</tool_call>"},
      {ToolSyntax::kSeed,
       "<seed:tool_call>\n<function=look>\n<parameter=at>x</parameter>\n<parameter=how>up</"
       "parameter>"
       "\n</function>\n</seed:tool_call>",
       true},
      {ToolSyntax::kGlm,
       "<tool_call>look\n<arg_key>at</arg_key>\n<arg_value>sky</arg_value>\n<arg_key>how</"
       "arg_key>\n"
       "<arg_value>up</arg_value>\n</tool_call><tool_call>stop</tool_call>"},
      {ToolSyntax::kLongcat,
       "<longcat_tool_call>look\n<longcat_arg_key>at</longcat_arg_key>\n<longcat_arg_value>sky"
       "</longcat_arg_value>\n<longcat_arg_key>how</longcat_arg_key>\n<longcat_arg_value>up"
       "</longcat_arg_value>\n</longcat_tool_call>",
       true},
      {ToolSyntax::kMiniMax,
       "<minimax:tool_call>\n<invoke name=\"look\">\n<parameter name=\"at\">sky</parameter>\n"
       "<parameter name=\"how\">up</parameter>\n</invoke>\n<invoke name=\"stop\">\n</invoke>\n"
       "</minimax:tool_call>"},
      {ToolSyntax::kMiniCpm,
       "<function name=\"look\"><param name=\"at\">sky</param><param name=\"how\">up</param>"
       "</function>",
       true},
      {ToolSyntax::kDeepSeekXml,
       Dsml("function_calls>\n") + Dsml("invoke name=\"look\">\n") + param +
           "at\" string=\"true\">sky" + Dsml("parameter>", true) + "\n" + param +
           "far\" string=\"false\">3" + Dsml("parameter>", true) + "\n" + param +
           "how\" string=\"true\">up" + Dsml("parameter>", true) + "\n" + Dsml("invoke>", true) +
           "\n" + Dsml("function_calls>", true),
       true},
      {ToolSyntax::kDeepSeek, DeepSeek("tool calls begin") + DeepSeek("tool call begin") + "look" +
                                  DeepSeek("tool sep") + kLook + DeepSeek("tool call end") +
                                  DeepSeek("tool call begin") + "function" + DeepSeek("tool sep") +
                                  "stop\n```json\n{}\n```" + DeepSeek("tool call end") +
                                  DeepSeek("tool calls end")},
      {ToolSyntax::kKimi,
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0"
       "<|tool_call_argument_begin|>" +
           kLook +
           "<|tool_call_end|><|tool_call_begin|>functions.stop:1<|tool_call_argument_begin|>{}"
           "<|tool_call_end|><|tool_calls_section_end|>"},
      {ToolSyntax::kKimiXml,
       "<|open|>tools<|sep|><|open|>call tool=\"look\" index=\"1\"<|sep|><|open|>argument "
       "key=\"at\" type=\"string\"<|sep|>sky<|close|>argument<|sep|><|open|>argument key=\"how\" "
       "type=\"string\"<|sep|>up<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
       true},
      {ToolSyntax::kMistral, "[TOOL_CALLS]look[ARGS]" + kLook + "[TOOL_CALLS]stop[ARGS]{}"},
      {ToolSyntax::kLlama3, "{\"name\": \"look\", \"parameters\": " + kLook + "}", true},
      {ToolSyntax::kNemotron, "<TOOLCALL>[{\"name\": \"look\", \"arguments\": " + kLook +
                                  "}, {\"name\": \"stop\", \"arguments\": {}}]</TOOLCALL>"},
      {ToolSyntax::kGranite, "<|tool_call|>[{\"name\": \"stop\", \"arguments\": {}}]", true},
      {ToolSyntax::kPhi, "<|tool_call|>[{\"name\": \"stop\", \"arguments\": {}}]<|/tool_call|>",
       true},
      {ToolSyntax::kCommand,
       "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"look\", "
       "\"parameters\": " +
           kLook + "}\n]<|END_ACTION|>",
       true},
      {ToolSyntax::kPythonic,
       "<|tool_call_start|>[look(at=\"sky\", how=\"up\", on=[true]), stop()]<|tool_call_end|>"},
      {ToolSyntax::kLlama4, "[look(at=\"sky\", far=3, how=\"up\"), add_2(n=true)]"},
      {ToolSyntax::kHarmony,
       "<|channel|>commentary to=functions.look <|constrain|>json<|message|>" + kLook, true},
  };
}

struct Call {
  std::string name;
  std::string arguments;
};

// The calls of a text; nothing when it has anything else.
std::vector<Call> ReadCalls(ToolSyntax syntax, const std::string& text) {
  const bool has_channels = syntax == ToolSyntax::kHarmony;
  const ReasoningSyntax reasoning =
      has_channels ? ReasoningSyntax::kHarmony : ReasoningSyntax::kNone;
  OutputParser parser({.syntax = {.tools = syntax, .reasoning = reasoning}}, Tools());
  std::vector<OutputEvent> events;
  parser.Feed(text, events);
  parser.Finish(events);
  std::vector<Call> calls;
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case OutputEvent::Kind::kToolBegin:
        calls.push_back({event.text, ""});
        break;
      case OutputEvent::Kind::kToolArguments:
        calls.back().arguments += event.text;
        break;
      case OutputEvent::Kind::kToolEnd:
        if (!event.complete) return {};
        break;
      default:
        if (event.text.find_first_not_of(" \n\r\t") != std::string::npos) return {};
    }
  }
  return calls;
}

class ToolGrammarTest : public testing::TestWithParam<bool> {
 protected:
  // The marks of the syntax are special tokens, or text.
  void Load(ToolSyntax syntax, bool several) {
    const std::vector<std::string_view> marks = SyntaxMarks({.tools = syntax});
    std::vector<std::string_view> special = marks;
    std::erase_if(special, [](std::string_view mark) { return !GetParam() || mark.size() < 2; });
    tokenizer_ = std::make_unique<MarkTokenizer>(std::move(special));
    auto compiler = GrammarCompiler::Create(*tokenizer_, tokenizer_->vocab_size() + 7, marks);
    ASSERT_TRUE(compiler.ok()) << compiler.status().message();
    compiler_ = std::move(compiler).value();
    auto grammar = MakeToolGrammar(Tools(), {.syntax = syntax, .several = several});
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    std::vector<std::string> relaxed;
    auto constraint =
        compiler_->Compile({GrammarSpec::Kind::kStructuralTag, *grammar, SchemaMode::kRelax},
                           std::vector<int32_t>{MarkTokenizer::kEnd}, &relaxed);
    ASSERT_TRUE(constraint.ok()) << constraint.status().message() << *grammar;
    constraint_ = std::move(constraint).value();
    EXPECT_TRUE(relaxed.empty()) << relaxed.front();
  }
  bool Allows(int32_t id) {
    bits_.assign(static_cast<size_t>(tokenizer_->vocab_size() + 7 + 31) / 32, 0);
    constraint_->FillMask(bits_);
    return MaskHas(bits_, id);
  }
  // How many bytes of the text may come; all of it and the end: npos.
  size_t Takes(const std::string& text) {
    auto fresh = constraint_->Fork();
    std::swap(fresh, constraint_);
    size_t bytes = 0;
    for (const int32_t id : tokenizer_->Encode(text, {})) {
      if (!Allows(id)) break;
      constraint_->Accept(id);
      bytes += tokenizer_->Decode(std::span(&id, 1), false).size();
    }
    const bool whole = bytes == text.size() && Allows(MarkTokenizer::kEnd);
    std::swap(fresh, constraint_);
    return whole ? std::string::npos : bytes;
  }
  // A text by chance, that tends to close what it opened.
  std::string Walk(ToolSyntax syntax, std::mt19937& random) {
    auto fresh = constraint_->Fork();
    std::swap(fresh, constraint_);
    const std::vector<std::string_view> marks = SyntaxMarks({.tools = syntax});
    std::string text;
    for (int i = 0; i < 3000; ++i) {
      if (Allows(MarkTokenizer::kEnd) && random() % 2 == 0) break;
      std::vector<int32_t> allowed;
      for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id) {
        // White space and non-ASCII have nothing to show.
        if (id != MarkTokenizer::kEnd && (id < 9 || id > 126 ? id > 256 : id > 31 || id == 10) &&
            MaskHas(bits_, id)) {
          allowed.push_back(id);
        }
      }
      std::string next = "\"}]";
      for (const std::string_view mark : marks) {
        for (size_t n = mark.size() - 1; n > 0; --n) {
          if (!text.ends_with(mark.substr(0, n))) continue;
          next.append(n, mark[n]);  // the more, the surer
          break;
        }
      }
      std::vector<int32_t> closing;
      for (const char c : next) {
        if (MaskHas(bits_, static_cast<uint8_t>(c))) closing.push_back(static_cast<uint8_t>(c));
      }
      for (const int32_t id : allowed) {
        if (id > MarkTokenizer::kEnd) closing.push_back(id);
      }
      if (!closing.empty() && random() % 8 != 0) allowed = closing;
      if (allowed.empty()) {
        for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id) {
          if (id != MarkTokenizer::kEnd && MaskHas(bits_, id)) allowed.push_back(id);
        }
      }
      if (allowed.empty()) break;
      const int32_t id = allowed[random() % allowed.size()];
      constraint_->Accept(id);
      text += tokenizer_->Decode(std::span(&id, 1), false);
    }
    const bool whole = Allows(MarkTokenizer::kEnd);
    std::swap(fresh, constraint_);
    return whole ? text : "";
  }

  std::unique_ptr<MarkTokenizer> tokenizer_;
  std::unique_ptr<GrammarCompiler> compiler_;
  std::unique_ptr<Constraint> constraint_;
  std::vector<uint32_t> bits_;
};

TEST_P(ToolGrammarTest, WhatModelsAreTaughtIsAllowed) {
  for (const Sample& sample : Samples()) {
    const std::string_view name = ToolSyntaxName(sample.syntax);
    Load(sample.syntax, true);
    EXPECT_EQ(Takes(sample.good), std::string::npos)
        << name << ": stops in front of " << sample.good.substr(Takes(sample.good));
    EXPECT_EQ(Takes("\n\n" + sample.good), std::string::npos) << name;
    EXPECT_EQ(ReadCalls(sample.syntax, sample.good).size(), sample.one ? 1u : 2u) << name;
    EXPECT_EQ(Takes("Sure, I look."), 0u) << name;
    EXPECT_EQ(Takes(""), 0u) << name << ": a call has to come";
    if (sample.one) continue;
    Load(sample.syntax, false);
    EXPECT_LT(Takes(sample.good), sample.good.size()) << name << ": one call";
  }
}

TEST_P(ToolGrammarTest, WhatIsAllowedIsReadAsCalls) {
  std::mt19937 random(7);
  for (const Sample& sample : Samples()) {
    const std::string_view name = ToolSyntaxName(sample.syntax);
    Load(sample.syntax, true);
    int whole = 0;
    // A walk that finds no end is given up.
    for (int i = 0; i < 4 || (whole == 0 && i < 100); ++i) {
      const std::string text = Walk(sample.syntax, random);
      if (text.empty()) continue;
      ++whole;
      const std::vector<Call> calls = ReadCalls(sample.syntax, text);
      ASSERT_FALSE(calls.empty()) << name << ": " << text;
      for (const Call& call : calls) {
        const auto json = ParseOrderedJson(call.arguments, "arguments");
        ASSERT_TRUE(json.ok() && json->is_object()) << name << ": " << text;
        if (call.name == "look") {
          EXPECT_TRUE(json->contains("at") && json->contains("how")) << name << ": " << text;
          EXPECT_TRUE((*json)["how"] == "up" || (*json)["how"] == "down") << text;
          EXPECT_TRUE((*json)["at"].is_string()) << text;
        } else if (call.name == "add_2") {
          EXPECT_TRUE((*json)["n"].is_boolean()) << name << ": " << text;
        } else {
          EXPECT_EQ(call.name, "stop") << name << ": " << text;
        }
      }
    }
    EXPECT_GT(whole, 0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Marks, ToolGrammarTest, testing::Bool());

TEST(ToolGrammar, OlderMistralsHaveLists) {
  const ToolGrammarOptions options{.syntax = ToolSyntax::kMistral,
                                   .has_token = [](std::string_view) { return false; }};
  const auto grammar = MakeToolGrammar(Tools(), options);
  ASSERT_TRUE(grammar.ok());
  EXPECT_EQ(grammar->find("[ARGS]"), std::string::npos);
}

TEST(ToolGrammar, ASyntaxWithoutOneIsNamed) {
  for (const ToolSyntax syntax : {ToolSyntax::kGemma4, ToolSyntax::kFunctionGemma}) {
    const auto grammar = MakeToolGrammar(Tools(), {.syntax = syntax});
    ASSERT_FALSE(grammar.ok());
    EXPECT_NE(grammar.status().message().find(ToolSyntaxName(syntax)), std::string::npos);
  }
  EXPECT_FALSE(MakeToolGrammar(Tools(), {.syntax = ToolSyntax::kNone}).ok());
}

}  // namespace
}  // namespace tq

#include "grammar/grammar_compiler.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "grammar/tokenizer_for_test.h"

namespace tq {
namespace {

using Kind = GrammarSpec::Kind;
constexpr int64_t kVocabSize = 300;  // of the logits: padded

class GrammarTest : public testing::Test {
 protected:
  GrammarTest() : compiler_(std::move(GrammarCompiler::Create(tokenizer_, kVocabSize)).value()) {}

  Result<std::unique_ptr<Constraint>> Compile(Kind kind, std::string text,
                                              SchemaMode mode = SchemaMode::kRefuse) {
    return compiler_->Compile({kind, std::move(text), mode}, std::vector<int32_t>{tokenizer_.kEnd},
                              &relaxed_);
  }
  static bool Allows(Constraint& constraint, int32_t id) {
    std::vector<uint32_t> bits(12);
    constraint.FillMask(bits);
    return (bits[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
  }
  // Whether the whole text and then the end is allowed.
  bool Matches(Kind kind, const std::string& grammar, std::string_view text) {
    auto constraint = Compile(kind, grammar);
    EXPECT_TRUE(constraint.ok()) << constraint.status().message();
    return constraint.ok() && Accepts(**constraint, text);
  }
  bool Accepts(Constraint& constraint, std::string_view text) {
    for (const int32_t id : tokenizer_.Encode(text, {})) {
      if (!Allows(constraint, id)) {
        return false;
      }
      constraint.Accept(id);
    }
    return Allows(constraint, tokenizer_.kEnd);
  }
  // What a model writes that ranks the bytes in this order, and everything else by value.
  std::string Write(Constraint& constraint, std::string_view order, size_t max_tokens) {
    std::vector<int32_t> ids;
    while (ids.size() < max_tokens && !constraint.IsTerminated()) {
      int32_t best = -1;
      for (const char c : order) {
        if (best < 0 && Allows(constraint, static_cast<uint8_t>(c))) {
          best = static_cast<uint8_t>(c);
        }
      }
      for (int32_t id = tokenizer_.kEnd; id >= 32 && best < 0; --id) {
        best = Allows(constraint, id) ? id : best;
      }
      EXPECT_GE(best, 0);
      if (best < 0) {
        break;
      }
      constraint.Accept(best);
      ids.push_back(best);
    }
    return tokenizer_.Decode(ids, true);
  }

  ByteTokenizer tokenizer_{{"\": ", "{\"", "true"}};
  std::unique_ptr<GrammarCompiler> compiler_;
  std::vector<std::string> relaxed_;
};

TEST_F(GrammarTest, JsonObject) {
  EXPECT_TRUE(Matches(Kind::kJsonObject, "", R"({"a": [1, null, {"b": "\u00e9"}]})"));
  EXPECT_FALSE(Matches(Kind::kJsonObject, "", "[1]"));
  EXPECT_FALSE(Matches(Kind::kJsonObject, "", R"({"a": })"));
}

TEST_F(GrammarTest, SchemaKeywords) {
  struct Case {
    const char* schema;
    const char* good;
    const char* bad;
  };
  const Case cases[] = {
      {R"({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]})", R"({"n":3})",
       R"({})"},
      {R"({"type":"object","properties":{"n":{"type":"integer"}}})", R"({})", R"({"m":3})"},
      {R"({"type":"integer","minimum":3,"maximum":12})", "12", "13"},
      {R"({"type":"string","minLength":2,"maxLength":3})", R"("abc")", R"("a")"},
      {R"({"type":"string","pattern":"[a-z]+-\\d"})", R"("see ab-7.")", R"("ab7")"},
      {R"({"type":"string","pattern":"^\\d{3}$"})", R"("123")", R"("1234")"},
      {R"({"type":"string","format":"date"})", R"("2026-01-31")", R"("2026-13-31")"},
      {R"({"enum":["a",2,null]})", "null", "3"},
      {R"({"const":{"a":1}})", R"({"a":1})", R"({"a":2})"},
      {R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2})", "[true,false]",
       "[true,true,true]"},
      {R"({"type":["string","null"]})", "null", "1"},
      {R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"next":{"$ref":"#/$defs/t"}}}}})",
       R"({"next":{"next":{}}})", R"({"next":1})"},
      {R"({"anyOf":[{"type":"integer"},{"type":"object"}]})", R"({"x":[1]})", "[1]"},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})", R"({"x":1})",
       R"({"x":"1"})"},
      {R"({"type":"object","patternProperties":{"^x-":{"type":"integer"}}})", R"({"x-a":1})",
       R"({"y":1})"},
      {R"({"type":"integer","multipleOf":5})", "25", "26"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(Matches(Kind::kJsonSchema, c.schema, c.good)) << c.schema << " " << c.good;
    EXPECT_FALSE(Matches(Kind::kJsonSchema, c.schema, c.bad)) << c.schema << " " << c.bad;
  }
}

TEST_F(GrammarTest, RegexAndEbnf) {
  EXPECT_TRUE(Matches(Kind::kRegex, "(yes|no)!*", "yes!!"));
  EXPECT_FALSE(Matches(Kind::kRegex, "(yes|no)!*", "maybe"));
  const std::string grammar = "root ::= item (\",\" item)*\nitem ::= [a-z]+ | \"(\" root \")\"\n";
  EXPECT_TRUE(Matches(Kind::kEbnf, grammar, "a,(b,cd)"));
  EXPECT_FALSE(Matches(Kind::kEbnf, grammar, "a,"));
}

TEST_F(GrammarTest, StructuralTag) {
  const std::string tag = R"({"type":"structural_tag","format":{"type":"triggered_tags",
    "triggers":["<call>"],"tags":[{"begin":"<call>","content":{"type":"json_schema","json_schema":
    {"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},"end":"</call>"}]}})";
  EXPECT_TRUE(Matches(Kind::kStructuralTag, tag, R"(text <call>{"n": 1}</call>)"));
  EXPECT_FALSE(Matches(Kind::kStructuralTag, tag, R"(text <call>{"n": "1"}</call>)"));
}

TEST_F(GrammarTest, BadGrammarsAreErrors) {
  const std::vector<std::pair<Kind, std::string>> cases = {
      {Kind::kJsonSchema, "{"},
      {Kind::kJsonSchema, R"j({"type":"string","pattern":"a(?=b)"})j"},
      {Kind::kJsonSchema, R"({"type":"integer","minimum":5,"maximum":1})"},
      {Kind::kJsonSchema,
       R"({"oneOf":[{"type":"object","properties":{"a":{}}},{"type":"object"}]})"},
      {Kind::kRegex, "(a"},
      {Kind::kRegex, "a\\b"},
      {Kind::kEbnf, "root ::= other"},
      {Kind::kStructuralTag, "{}"},
  };
  for (const auto& [kind, text] : cases) {
    const auto constraint = Compile(kind, text);
    ASSERT_FALSE(constraint.ok()) << text;
    EXPECT_EQ(constraint.status().message().find('\n'), std::string::npos);
  }
}

TEST_F(GrammarTest, TokensOfSeveralBytesAndSpecialOnes) {
  auto constraint = Compile(Kind::kJsonObject, "");
  ASSERT_TRUE(constraint.ok());
  EXPECT_TRUE(Allows(**constraint, 260));   // {"
  EXPECT_FALSE(Allows(**constraint, 261));  // true
  EXPECT_FALSE(Allows(**constraint, tokenizer_.kThink));
  EXPECT_FALSE(Allows(**constraint, 299));  // padding
  EXPECT_FALSE(Allows(**constraint, tokenizer_.kEnd));
}

TEST_F(GrammarTest, RollbackAndFork) {
  auto constraint = Compile(Kind::kRegex, "ab|cd");
  ASSERT_TRUE(constraint.ok());
  Constraint& first = **constraint;
  first.Accept('a');
  const auto second = first.Fork();
  first.Rollback(1);
  EXPECT_TRUE(Allows(first, 'c'));
  EXPECT_FALSE(Allows(*second, 'c'));
  EXPECT_TRUE(Allows(*second, 'b'));
  first.Accept('c');
  first.Accept('d');
  first.Accept(tokenizer_.kEnd);
  EXPECT_TRUE(first.IsTerminated());
}

TEST_F(GrammarTest, WithoutEndIdsTheCompleteTextTerminates) {
  auto constraint = compiler_->Compile({Kind::kRegex, "ab", {}}, {}, nullptr);
  ASSERT_TRUE(constraint.ok());
  (*constraint)->Accept('a');
  EXPECT_FALSE((*constraint)->IsTerminated());
  (*constraint)->Accept('b');
  EXPECT_TRUE((*constraint)->IsTerminated());
}

// A model that closed a string too early writes blanks as long as it may.
TEST_F(GrammarTest, WhitespaceIsBounded) {
  auto constraint = Compile(Kind::kJsonSchema,
                            R"({"type":"object","properties":{"items":{"type":"array","maxItems":2,
        "items":{"type":"object","properties":{"text":{"type":"string","maxLength":4}},
        "required":["text"]}}},"required":["items"]})");
  ASSERT_TRUE(constraint.ok());
  const std::string text = Write(**constraint, " \n", 2000);
  EXPECT_TRUE((*constraint)->IsTerminated()) << text;
  EXPECT_TRUE(nlohmann::json::accept(text)) << text;
}

// After the closing brace only the end may come.
TEST_F(GrammarTest, NothingFollowsTheValue) {
  auto constraint = Compile(Kind::kJsonObject, "");
  ASSERT_TRUE(constraint.ok());
  (*constraint)->Accept('{');
  (*constraint)->Accept('}');
  EXPECT_FALSE(Allows(**constraint, '\n'));
  EXPECT_FALSE(Allows(**constraint, ' '));
  EXPECT_TRUE(Allows(**constraint, tokenizer_.kEnd));
}

TEST_F(GrammarTest, LargeBoundsDoNotExplode) {
  auto constraint = Compile(Kind::kJsonSchema,
                            R"({"type":"array","maxItems":5000,"items":{"type":"array",
        "maxItems":5000,"items":{"type":"string","maxLength":100000}}})");
  ASSERT_TRUE(constraint.ok()) << constraint.status().message();
  EXPECT_TRUE(Accepts(**constraint, R"([["abc","d"],[]])"));
}

TEST_F(GrammarTest, AnOddToolSchemaIsRelaxed) {
  auto constraint = Compile(Kind::kJsonSchema,
                            R"j({"type":"object","properties":{"a":{"type":"string",
        "pattern":"(?!x)"}},"required":["a"]})j",
                            SchemaMode::kRelax);
  ASSERT_TRUE(constraint.ok()) << constraint.status().message();
  EXPECT_EQ(relaxed_.size(), 1u);
  EXPECT_TRUE(Accepts(**constraint, R"({"a":"x"})"));
}

}  // namespace
}  // namespace tq

#include "grammar/json_schema.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

Status AnyRegex(const std::string&) { return Status::Ok(); }

std::string Prepared(std::string_view schema, SchemaMode mode = SchemaMode::kRefuse) {
  Result<PreparedSchema> out = PrepareSchema(schema, mode, AnyRegex);
  return out.ok() ? out->text : "error: " + out.status().message();
}

TEST(AnchorPattern, GivesSubstringSemantics) {
  EXPECT_EQ(*AnchorPattern("^[a-z]+$"), "[a-z]+");
  EXPECT_EQ(*AnchorPattern("[a-z]+-\\d"), ".*([a-z]+-\\d).*");
  EXPECT_EQ(*AnchorPattern("^a|b$"), "(a).*|.*(b)");
  EXPECT_EQ(*AnchorPattern("^(a|b)$"), "(a|b)");
  EXPECT_EQ(*AnchorPattern("[|^$]\\$"), ".*([|^$]\\$).*");
  EXPECT_FALSE(AnchorPattern("a^b").ok());
  EXPECT_FALSE(AnchorPattern("(^a)").ok());
}

TEST(PrepareSchema, NamesWhatItCannotEnforce) {
  struct Case {
    const char* schema;
    const char* names;
  };
  const Case cases[] = {
      {R"({"type":"object","properties":{"a":{"not":{"type":"null"}}}})", "/properties/a: not"},
      {R"({"type":"array","uniqueItems":true})", "uniqueItems"},
      {R"({"type":"array","contains":{"type":"null"}})", "contains"},
      {R"({"type":"number","multipleOf":0.5})", "multipleOf"},
      {R"({"type":"string","pattern":"^a$","maxLength":3})", "maxLength"},
      {R"({"type":"string","format":"color"})", "color"},
      {R"({"type":"object","if":{},"then":{}})", "if"},
      {R"({"$ref":"#/$defs/a","minLength":2,"$defs":{"a":{"type":"string"}}})", "minLength"},
      {R"({"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]}]})", "properties"},
      {R"({"allOf":[{"type":"string"},{"minLength":3}]})", "allOf"},
      {R"({"$ref":"https://example.org/s"})", "https://example.org/s"},
      {R"({"$ref":"#/no/where"})", "/no/where"},
      {R"({"minLength":2,"minimum":1})", "type"},
      {R"({"type":"thing"})", "thing"},
      {R"({"enum":[]})", "enum"},
      {R"({"type":"object","required":["b"],"additionalProperties":false})", "'b'"},
      {R"([1])", "object"},
      {R"({"type":)", "line 1"},
      {R"({"$ref":"#/components/s","components":{"s":{"not":{}}}})", "/components/s: not"},
  };
  for (const Case& c : cases) {
    const std::string out = Prepared(c.schema);
    EXPECT_EQ(out.rfind("error: ", 0), 0u) << c.schema << " -> " << out;
    EXPECT_NE(out.find(c.names), std::string::npos) << c.schema << " -> " << out;
  }
}

TEST(PrepareSchema, KeepsTheMeaningOfWhatItRewrites) {
  EXPECT_EQ(Prepared(R"({"type":"object"})"), R"({"type":"object","additionalProperties":true})");
  EXPECT_EQ(Prepared(R"({"type":"array"})"), R"({"type":"array","items":true})");
  EXPECT_EQ(Prepared(R"({"type":"string","enum":["a",1]})"), R"({"enum":["a"]})");
  EXPECT_EQ(Prepared(R"({"type":"string","nullable":true})"),
            R"({"type":["string","null"],"nullable":true})");
  EXPECT_EQ(Prepared(R"({"minLength":2})"), R"({"minLength":2,"type":"string"})");
  EXPECT_EQ(Prepared(R"({"type":"array","items":[{"type":"null"}],"additionalItems":false})"),
            R"({"type":"array","prefixItems":[{"type":"null"}],"items":false})");
  EXPECT_EQ(Prepared(R"({"properties":{},"required":["a"]})"),
            R"({"properties":{"a":{}},"required":["a"],"type":"object"})");
  EXPECT_EQ(
      Prepared(R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"required":["b"]}]})"),
      R"({"type":"object","properties":{"a":{},"b":{}},"required":["b"]})");
  EXPECT_EQ(
      Prepared(R"({"type":"object","anyOf":[{"properties":{"a":{}}},{"type":"object"}]})"),
      R"({"anyOf":[{"properties":{"a":{}},"type":"object"},{"type":"object","additionalProperties":true}]})");
  EXPECT_EQ(Prepared(R"({"title":"T","description":"d","default":1,"type":"integer"})"),
            R"({"title":"T","description":"d","default":1,"type":"integer"})");
}

// A tool's schema must not stop the agent: what cannot be enforced is taken out and noted.
TEST(PrepareSchema, RelaxesToolSchemas) {
  constexpr std::string_view schema = R"j({"type":"object","properties":{"a":{"type":"string",
      "pattern":"a(?=b)","format":"x"}},"if":{}})j";
  const Result<PreparedSchema> out =
      PrepareSchema(schema, SchemaMode::kRelax, [](const std::string& regex) {
        return regex.find("(?=") == std::string::npos ? Status::Ok() : Unsupported("lookahead");
      });
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(out->text, R"({"type":"object","properties":{"a":{"type":"string"}}})");
  ASSERT_EQ(out->relaxed.size(), 3u);
  EXPECT_EQ(out->relaxed[0], "/: if: cannot be enforced");
  EXPECT_EQ(out->relaxed[1], "/properties/a: pattern: lookahead");
}

}  // namespace
}  // namespace tq

// Structured output through the APIs: the form is kept, thoughts stay free, what cannot be kept is
// refused by name.
#include <regex>

#include "grammar/grammar_compiler.h"
#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

constexpr const char* kSchema =
    R"({"type": "object", "properties": {"x": {"const": 7}}, "required": ["x"],
        "additionalProperties": false})";

class Formats : public testing::Test {
 protected:
  void SetUp() override {
    if (!GrammarCompiler::Available()) GTEST_SKIP() << "built without XGrammar";
  }
};

std::string ContentOf(const HttpReply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.status == 200 ? reply.json()["choices"][0]["message"]["content"].get<std::string>()
                             : std::string();
}

struct Case {
  std::string field;
  const char* form;
  const char* script;  // begins as allowed and goes on otherwise
};

TEST_F(Formats, EveryFieldIsKept) {
  const char* const object = R"(\{\s*"x"\s*:\s*7\s*\})";
  const char* const other = R"({"x": 8, "y")";
  const Case cases[] = {
      {R"("guided_regex": "[ab]{3}")", "[ab]{3}", "bye"},
      {R"("structured_outputs": {"regex": "[ab]{3}"})", "[ab]{3}", "apple"},
      {R"("guided_choice": ["yes", "no"])", "yes|no", "yellow"},
      {R"("guided_grammar": "root ::= \"x\" | \"yy\"")", "x|yy", "yes"},
      {R"("grammar": "root ::= \"x\" | \"yy\"")", "x|yy", "xylophone"},
      {R"("guided_json": )" + std::string(kSchema), object, other},
      {R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": )" +
           std::string(kSchema) + "}}",
       object, other},
  };
  for (const Case& c : cases) {
    TestServer server({.script = c.script});
    const std::string content = ContentOf(server.Post("/v1/chat/completions", HiWith(c.field)));
    EXPECT_TRUE(std::regex_match(content, std::regex(c.form))) << c.field << ": " << content;
  }
}

TEST_F(Formats, ThoughtsStayFree) {
  TestServer server({.script = "<think>Hm.</think>bye"});
  const HttpReply reply =
      server.Post("/v1/chat/completions", HiWith(R"("guided_regex": "[ab]{3}")"));
  EXPECT_TRUE(std::regex_match(ContentOf(reply), std::regex("[ab]{3}"))) << reply.body;
  EXPECT_EQ(reply.json()["choices"][0]["message"]["reasoning_content"], "Hm.");
}

TEST_F(Formats, MessagesAndResponsesKnowTheirOwnFields) {
  TestServer server({.script = R"({"x": 8, "y")"});
  const std::string format =
      R"({"type": "json_schema", "name": "n", "schema": )" + std::string(kSchema) + "}";
  const HttpReply message = server.Post(
      "/v1/messages", HiWith(R"("max_tokens": 400, "output_config": {"format": )" + format + "}"));
  ASSERT_EQ(message.status, 200) << message.body;
  const auto said = ParseJson(message.json()["content"][0]["text"].get<std::string>(), "answer");
  ASSERT_TRUE(said.ok()) << message.body;
  EXPECT_EQ((*said)["x"], 7);
  const HttpReply response =
      server.Post("/v1/responses", R"({"input": "Hi", "text": {"format": )" + format + "}}");
  ASSERT_EQ(response.status, 200) << response.body;
  const Json item = response.json()["output"][0];
  const auto text = ParseJson(item["content"][0]["text"].get<std::string>(), "answer");
  ASSERT_TRUE(text.ok()) << response.body;
  EXPECT_EQ((*text)["x"], 7);
}

TEST_F(Formats, WhatCannotBeKeptIsRefusedByName) {
  TestServer server({});
  const std::pair<const char*, const char*> cases[] = {
      {R"("guided_json": {"type": "array", "uniqueItems": true})", "uniqueItems"},
      {R"("guided_regex": "(")", "regex"},
      {R"("guided_choice": [])", "guided_choice"},
      {R"("guided_regex": "a", "guided_choice": ["b"])", "guided_choice"},
      {R"("response_format": {"type": "json_schema"})", "response_format"},
  };
  for (const auto& [field, name] : cases) {
    const HttpReply reply = server.Post("/v1/chat/completions", HiWith(field));
    EXPECT_EQ(reply.status, 400) << field;
    EXPECT_NE(reply.body.find(name), std::string::npos) << field << ": " << reply.body;
  }
}

}  // namespace
}  // namespace tq::server

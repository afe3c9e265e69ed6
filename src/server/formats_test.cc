// Structured output through the APIs: the form is kept, thoughts stay free, what cannot be kept is
// refused by name.
#include <regex>

#include "grammar/grammar_compiler.h"
#include "server/cases_for_test.h"
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

// Beside tools the answer is calls, or a text of the form.
std::string WithTools(const std::string& fields) {
  return HiWith(R"("max_tokens": 400, "tools": [{"type": "function", "function": {"name": "look",
      "parameters": {"type": "object", "properties": {"n": {"type": "integer"}},
      "required": ["n"]}}}], )" +
                fields);
}

const std::string kFormat = R"({"type": "json_schema", "json_schema": {"name": "n", "schema": )" +
                            std::string(kSchema) + "}}";

TEST_F(Formats, BesideToolsTheAnswerIsACallOrOfTheForm) {
  const std::string call =
      "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"n\": 42}}\n</tool_call>";
  for (const std::string before : {"", "\n\n", "<think>Hm.</think>\n\n"}) {
    for (const bool stream : {false, true}) {
      const std::string fields =
          R"("response_format": )" + kFormat + (stream ? R"(, "stream": true)" : "");
      const auto lines = [&](const std::string& script) {
        TestServer server({.script = before + script});
        const HttpReply reply = server.Post("/v1/chat/completions", WithTools(fields));
        EXPECT_EQ(reply.status, 200) << reply.body;
        return stream ? StreamOf(reply.body).lines : SummaryOf(reply.json());
      };
      const std::vector<std::string> called = lines(call);
      ASSERT_GE(called.size(), 2u) << before;
      EXPECT_EQ(called[called.size() - 2], R"(call look {"n":42})") << before;
      EXPECT_EQ(called.back(), "end tool_calls");
      // The 8 is not allowed, nor is what follows.
      const std::vector<std::string> said = lines(R"({"x": 8, "y")");
      ASSERT_GE(said.size(), 2u) << before;
      const std::string text = said[said.size() - 2];
      ASSERT_TRUE(text.starts_with("text ")) << text;
      const auto json = ParseJson(text.substr(5), "answer");
      ASSERT_TRUE(json.ok()) << text;
      EXPECT_EQ(*json, Json({{"x", 7}}));
      EXPECT_EQ(said.back(), "end stop");
    }
  }
}

// A model that would rather talk does not.
TEST_F(Formats, BesideToolsThereIsNoThirdWay) {
  // A template without thoughts.
  TestServer server(
      Says("I would rather talk. I would rather talk. I would rather talk.", kMistral));
  for (const std::string& field :
       {R"("response_format": )" + kFormat, std::string(R"("guided_regex": "[ab]{3}")"),
        std::string(R"("guided_choice": ["yes", "no"])")}) {
    const HttpReply reply =
        server.Post("/v1/chat/completions", WithTools(field + R"(, "parallel_tool_calls": false)"));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Json message = reply.json()["choices"][0]["message"];
    if (message.contains("tool_calls")) {
      EXPECT_EQ(message["tool_calls"].size(), 1u);
      EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "look");
    } else {
      const std::string text = message["content"];
      EXPECT_TRUE(std::regex_match(text, std::regex(R"(yes|no|[ab]{3}|\s*\{\s*"x"\s*:\s*7\s*\})")))
          << text;
    }
  }
  // Without white space in front, the form is the shorter way.
  TestServer choice(Says("yes", kMistral));
  EXPECT_EQ(ContentOf(choice.Post("/v1/chat/completions",
                                  WithTools(R"("guided_choice": ["yes", "no"])"))),
            "yes");
}

TEST_F(Formats, BesideToolsWhatCannotBeKeptIsRefusedByName) {
  TestServer server({});
  const HttpReply unique =
      server.Post("/v1/chat/completions",
                  WithTools(R"("guided_json": {"type": "array", "uniqueItems": true})"));
  EXPECT_EQ(unique.status, 400);
  EXPECT_NE(unique.body.find("uniqueItems"), std::string::npos) << unique.body;

  // A syntax of calls without a grammar.
  TestServer gemma(Says("x", TemplateWith("<|tool_call>call:f{}<tool_call|>")));
  const HttpReply chat =
      gemma.Post("/v1/chat/completions", WithTools(R"("response_format": )" + kFormat));
  EXPECT_EQ(chat.status, 400);
  EXPECT_EQ(chat.json()["error"]["param"], "response_format") << chat.body;
  const HttpReply response = gemma.Post(
      "/v1/responses",
      R"({"input": "Hi", "tools": [{"type": "function", "name": "look"}], "text": {"format":
         {"type": "json_schema", "name": "n", "schema": )" +
          std::string(kSchema) + "}}}");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.json()["error"]["param"], "text.format") << response.body;
  // Hidden tools are none; calls that must come are no text.
  EXPECT_EQ(gemma
                .Post("/v1/chat/completions",
                      WithTools(R"("tool_choice": "none", "response_format": )" + kFormat))
                .status,
            200);
  TestServer hermes({.script = "<tool_call>{\"name\": \"look\", \"arguments\": {\"n\": 1}}"});
  const Json forced =
      hermes
          .Post("/v1/chat/completions",
                WithTools(R"("tool_choice": "required", "parallel_tool_calls": false,
                             "response_format": )" +
                          kFormat))
          .json()["choices"][0];
  EXPECT_EQ(forced["finish_reason"], "tool_calls") << forced;
}

}  // namespace
}  // namespace tq::server

// Budgets of thoughts.
#include "server/thought_limits.h"

#include "server/fields.h"
#include "server/server_for_test.h"

namespace tq::server {
namespace {

Result<int64_t> Limit(const char* json, ChatPromptOptions prompt = {}) {
  const auto body = ParseOrderedJson(json, "body");
  EXPECT_TRUE(body.ok());
  return ReadThoughtLimit(RequestNode(*body, ""), prompt);
}

TEST(ThoughtLimits, TheFieldsOfAllApis) {
  EXPECT_EQ(*Limit("{}"), -1);
  EXPECT_EQ(*Limit(R"({"thinking": {"budget_tokens": 7}})"), 7);
  EXPECT_EQ(*Limit(R"({"reasoning": {"max_tokens": 8}})"), 8);
  EXPECT_EQ(*Limit(R"({"thinking_budget": 9})"), 9);
  EXPECT_EQ(*Limit(R"({"thinking_budget_tokens": 0})"), 0);
  EXPECT_EQ(*Limit("{}", {.reasoning_effort = "low"}), 2048);
  EXPECT_EQ(*Limit("{}", {.reasoning_effort = "max"}), 131072);
  EXPECT_EQ(*Limit(R"({"thinking_budget": 9})", {.reasoning_effort = "low"}), 9);
  EXPECT_FALSE(Limit(R"({"thinking_budget": -2})").ok());
  EXPECT_FALSE(Limit(R"({"thinking_budget": "much"})").ok());
  EXPECT_FALSE(Limit(R"({"thinking_budget": 9, "reasoning": {"max_tokens": 8}})").ok());
}

// The script goes on by itself: its place does not depend on what was said.
TEST(ThoughtLimits, ThoughtsAreClosedAndTheAnswerComes) {
  TestServer server({.script = "<think>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaHello"});
  const Json message = server.Post("/v1/chat/completions", HiWith(R"("thinking_budget": 5)"))
                           .json()["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "aaaaa");
  EXPECT_TRUE(message["content"].get<std::string>().ends_with("Hello"));
  const Json anthropic =
      server
          .Post("/v1/messages", HiWith(R"("max_tokens": 200, "thinking": {"type": "enabled",
              "budget_tokens": 3})"))
          .json();
  EXPECT_EQ(anthropic["content"][0]["thinking"], "aaa");
  EXPECT_TRUE(anthropic["content"][1]["text"].get<std::string>().ends_with("Hello"));
  const Json response =
      server.Post("/v1/responses", R"({"input": "Hi", "reasoning": {"max_tokens": 4}})").json();
  EXPECT_EQ(response["output"][0]["summary"][0]["text"], "aaaa");
}

// --chat-template-args: defaults that a request can change.
TEST(TemplateVariables, TheServersAreUnderTheRequests) {
  const OrderedJson defaults = {{"enable_thinking", false}, {"style", "brief"}};
  const auto read = [&](const char* json, std::optional<bool> thinks) {
    const auto body = ParseOrderedJson(json, "body");
    EXPECT_TRUE(body.ok());
    ChatPromptOptions options;
    options.enable_thinking = thinks;
    EXPECT_TRUE(ReadTemplateVariables(RequestNode(*body, ""), defaults, options).ok());
    return options;
  };
  EXPECT_EQ(read("{}", {}).enable_thinking, false);
  EXPECT_EQ(read("{}", {}).variables["style"], "brief");
  EXPECT_EQ(read("{}", true).enable_thinking, true);
  EXPECT_FALSE(read("{}", true).variables.contains("enable_thinking"));
  const auto asked = read(R"({"chat_template_kwargs": {"enable_thinking": true, "x": 1}})", {});
  EXPECT_EQ(asked.enable_thinking, true);
  EXPECT_EQ(asked.variables["x"], 1);
  EXPECT_EQ(asked.variables["style"], "brief");
}

}  // namespace
}  // namespace tq::server

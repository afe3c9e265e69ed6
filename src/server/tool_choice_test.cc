// Calls that must come, one at a time, or of some tools only.
#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

const std::string kTwoTools =
    R"("max_tokens": 400, "tools": [{"type": "function", "function": {"name": "look", "parameters":
       {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}},
       {"type": "function", "function": {"name": "stop"}}])";

std::string Chat(const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": "Hi"}], )" + kTwoTools + ", " + fields + "}";
}

Json Calls(const HttpReply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  const Json choice = reply.json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls") << choice;
  return choice["message"].value("tool_calls", Json::array());
}

// TC-10: the model wants to talk.
TEST(ToolChoice, ACallComesWhenItMust) {
  TestServer server({.script = "I would rather talk. I would rather talk. I would rather talk."});
  for (const char* choice :
       {R"("required")", R"({"type": "function", "function": {"name": "look"}})",
        R"({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools":
            [{"type": "function", "function": {"name": "look"}}]}})"}) {
    const Json calls = Calls(server.Post(
        "/v1/chat/completions",
        Chat(R"("parallel_tool_calls": false, "tool_choice": )" + std::string(choice))));
    ASSERT_EQ(calls.size(), 1u) << choice;
    EXPECT_EQ(calls[0]["function"]["name"], "look");
    const auto arguments = ParseJson(calls[0]["function"]["arguments"].get<std::string>(), "");
    ASSERT_TRUE(arguments.ok());
    EXPECT_TRUE((*arguments)["n"].is_number_integer());
  }
  const Json stop = Calls(server.Post("/v1/chat/completions", Chat(R"("parallel_tool_calls": false,
              "tool_choice": {"type": "function", "function": {"name": "stop"}})")));
  ASSERT_EQ(stop.size(), 1u);
  EXPECT_EQ(stop[0]["function"]["name"], "stop");
  const auto none = ParseJson(stop[0]["function"]["arguments"].get<std::string>(), "");
  EXPECT_EQ(*none, Json::object()) << "it has no arguments";

  const Json message =
      server
          .Post("/v1/messages", R"({"max_tokens": 400, "messages": [{"role": "user", "content":
          "Hi"}], "tools": [{"name": "look", "input_schema": {"type": "object", "properties":
          {"n": {"type": "integer"}}, "required": ["n"]}}],
          "tool_choice": {"type": "any", "disable_parallel_tool_use": true}})")
          .json();
  EXPECT_EQ(message["stop_reason"], "tool_use") << message;
  EXPECT_TRUE(message["content"][0]["input"]["n"].is_number_integer());
  const Json response = server
                            .Post("/v1/responses", R"({"input": "Hi", "parallel_tool_calls": false,
          "tools": [{"type": "function", "name": "look", "parameters": {"type": "object",
          "properties": {"n": {"type": "integer"}}, "required": ["n"]}}],
          "tool_choice": {"type": "function", "name": "look"}})")
                            .json();
  EXPECT_EQ(response["output"][0]["type"], "function_call") << response;
  EXPECT_EQ(response["output"][0]["name"], "look");
}

TEST(ToolChoice, ThoughtsBeforeItStayFree) {
  TestServer server(
      {.script = "<think>Must I?</think><tool_call>\n{\"name\": \"look\", \"arguments\": {\"n\": "
                 "42}}\n</tool_call>"});
  const HttpReply reply = server.Post(
      "/v1/chat/completions", Chat(R"("tool_choice": "required", "parallel_tool_calls": false)"));
  const Json calls = Calls(reply);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["function"]["arguments"], R"({"n": 42})");
  EXPECT_EQ(reply.json()["choices"][0]["message"]["reasoning_content"], "Must I?");
}

TEST(ToolChoice, OneCallAtATime) {
  const std::string call = "<tool_call>{\"name\": \"stop\", \"arguments\": {}}</tool_call>";
  TestServer server({.script = call + call + call});
  EXPECT_EQ(Calls(server.Post("/v1/chat/completions", Chat(R"("tool_choice": "auto")"))).size(),
            3u);
  const std::string one = Chat(R"("parallel_tool_calls": false)");
  EXPECT_EQ(Calls(server.Post("/v1/chat/completions", one)).size(), 1u);
  const HttpReply stream =
      server.Post("/v1/chat/completions", Chat(R"("parallel_tool_calls": false, "stream": true)"));
  for (const Json& chunk : EventData(stream)) {
    const Json& delta = chunk["choices"][0]["delta"];
    if (delta.contains("tool_calls")) {
      EXPECT_EQ(delta["tool_calls"][0]["index"], 0);
    }
  }
  const std::vector<Json> chunks = EventData(stream);
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "tool_calls");
}

TEST(ToolChoice, AllowedToolsHideTheOthers) {
  TestServer server({.script = "Hi"});
  const auto prompt = [&](const std::string& fields) {
    return server.Post("/v1/chat/completions", Chat(fields))
        .json()["usage"]["prompt_tokens"]
        .get<int64_t>();
  };
  const int64_t both = prompt(R"("tool_choice": "auto")");
  const int64_t one = prompt(R"("tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode":
      "auto", "tools": [{"type": "function", "function": {"name": "look"}}]}})");
  EXPECT_EQ(both - one, 5) << "\"stop \"";
}

TEST(ToolChoice, WhatCannotBeIsRefused) {
  TestServer server({});
  const auto message = [&](const std::string& body) {
    const HttpReply reply = server.Post("/v1/chat/completions", body);
    EXPECT_EQ(reply.status, 400) << body;
    return reply.json()["error"]["message"].get<std::string>();
  };
  EXPECT_NE(message(HiWith(R"("tool_choice": "required")")).find("tool_choice: expected tools"),
            std::string::npos);
  EXPECT_NE(message(Chat(R"("tool_choice": "sometimes")")).find("tool_choice"), std::string::npos);
  EXPECT_NE(message(Chat(R"("tool_choice": {"type": "function", "function": {"name": "fly"}})"))
                .find("fly"),
            std::string::npos);
  EXPECT_NE(message(Chat(R"("tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode":
      "required", "tools": []}})"))
                .find("allowed_tools"),
            std::string::npos);
  EXPECT_NE(message(Chat(R"("parallel_tool_calls": 1)")).find("parallel_tool_calls"),
            std::string::npos);
}

// Hidden tools leave the answer to the format.
TEST(ToolChoice, NoneGoesWithAFormat) {
  TestServer server({.script = "[[[["});
  const Json answer =
      server
          .Post("/v1/chat/completions",
                Chat(R"("tool_choice": "none", "response_format": {"type": "json_schema",
                    "json_schema": {"schema": {"const": 5}}})"))
          .json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "5") << answer;
}

}  // namespace
}  // namespace tq::server

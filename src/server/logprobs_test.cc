// Log probabilities of the text that is shown, in the forms of three APIs.
#include "server/server_for_test.h"
#include "server/shown_tokens.h"

namespace tq::server {
namespace {

using Kind = OutputEvent::Kind;

// What the test model's tokens have: a byte is 1, the 266 others 0.
constexpr double kLogprob = -4.5899;

std::string Joined(const Json& entries) {
  std::string text;
  for (const Json& entry : entries) {
    for (const Json& byte : entry["bytes"]) text += static_cast<char>(byte.get<int>());
  }
  return text;
}

TEST(Logprobs, ChatHasOneEntryForEachShownToken) {
  TestServer server({.script = "<think>Hm.</think>A golden moon<tool_call>{"});
  for (const char* more : {"", R"(, "stop": ["moon"])"}) {
    const std::string body = HiWith(R"("logprobs": true, "top_logprobs": 2)" + std::string(more));
    const Json choice = server.Post("/v1/chat/completions", body).json()["choices"][0];
    const Json& content = choice["logprobs"]["content"];
    EXPECT_EQ(Joined(content), choice["message"]["content"].get<std::string>());
    EXPECT_EQ(content[0]["token"], "A");
    EXPECT_NEAR(content[0]["logprob"].get<double>(), kLogprob, 1e-3);
    ASSERT_EQ(content[0]["top_logprobs"].size(), 2u);
    EXPECT_EQ(content[0]["top_logprobs"][0]["token"], "A");
    EXPECT_TRUE(choice["logprobs"].contains("refusal"));

    std::string streamed;
    const Json without_stream = *ParseJson(body, "body");
    Json stream_body = without_stream;
    stream_body["stream"] = true;
    for (const Json& chunk : EventData(server.Post("/v1/chat/completions", stream_body.dump()))) {
      const Json& logprobs = chunk["choices"][0]["logprobs"];
      const Json& delta = chunk["choices"][0]["delta"];
      if (!logprobs.is_null()) {
        EXPECT_EQ(Joined(logprobs["content"]), delta["content"].get<std::string>());
        streamed += Joined(logprobs["content"]);
      }
    }
    EXPECT_EQ(streamed, choice["message"]["content"].get<std::string>());
  }
}

// AP-03, AP-04, AP-05
TEST(Logprobs, WhatIsAskedForIsChecked) {
  TestServer server({});
  const auto status = [&](const char* fields) {
    return server.Post("/v1/chat/completions", HiWith(fields)).status;
  };
  EXPECT_EQ(status(R"("logprobs": true)"), 200);
  EXPECT_EQ(status(R"("logprobs": true, "top_logprobs": 20)"), 200);
  EXPECT_EQ(status(R"("logprobs": true, "top_logprobs": 21)"), 400);
  EXPECT_EQ(status(R"("top_logprobs": 2)"), 400);
  EXPECT_EQ(status(R"("logprobs": 2)"), 400);
  const Json choice =
      server.Post("/v1/chat/completions", HiWith(R"("logprobs": true)")).json()["choices"][0];
  EXPECT_EQ(choice["logprobs"]["content"][0]["top_logprobs"], Json::array());
  const Json plain = server.Post("/v1/chat/completions", kHi).json();
  EXPECT_EQ(plain["choices"][0]["logprobs"], nullptr);
}

// ST-06: half a character belongs to the text that shows the whole one.
TEST(Logprobs, TokensOfHalfACharacterAreShown) {
  TestServer server({.script = "a\xF0\x9F\x98\x80z"});
  const Json choice =
      server.Post("/v1/chat/completions", HiWith(R"("logprobs": true)")).json()["choices"][0];
  const Json& content = choice["logprobs"]["content"];
  ASSERT_EQ(content.size(), 6u);
  EXPECT_EQ(content[1]["bytes"], Json::array({0xF0}));
  EXPECT_EQ(Joined(content), "a\xF0\x9F\x98\x80z");
}

TEST(Logprobs, CompletionsHaveTheirOwnForm) {
  TestServer server({.script = "\xC3\xA9xyz"});
  const Json choice =
      server.Post("/v1/completions", R"({"prompt": "<|assistant|>", "logprobs": 2})")
          .json()["choices"][0];
  const Json& logprobs = choice["logprobs"];
  EXPECT_EQ(logprobs["tokens"].size(), 5u);
  EXPECT_EQ(logprobs["tokens"][2], "x");
  EXPECT_EQ(logprobs["text_offset"], Json::array({0, 0, 1, 2, 3}));
  EXPECT_NEAR(logprobs["token_logprobs"][2].get<double>(), kLogprob, 1e-3);
  EXPECT_GE(logprobs["top_logprobs"][2].size(), 2u);
  EXPECT_TRUE(logprobs["top_logprobs"][2].contains("x"));
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": "a", "logprobs": 21})").status, 400);
  std::string tokens;
  for (const Json& chunk : EventData(server.Post(
           "/v1/completions", R"({"prompt": "<|assistant|>", "logprobs": 0, "stream": true})"))) {
    for (const Json& token : chunk["choices"][0]["logprobs"]["tokens"]) {
      tokens += token.get<std::string>();
    }
  }
  EXPECT_TRUE(tokens.ends_with("xyz"));
}

TEST(Logprobs, ResponsesWhenTheyAreIncluded) {
  TestServer server({});
  const std::string fields =
      R"({"input": "Hi", "top_logprobs": 1, "include": ["message.output_text.logprobs"])";
  const Json answer = server.Post("/v1/responses", fields + "}").json();
  const Json& part = answer["output"][0]["content"][0];
  EXPECT_EQ(Joined(part["logprobs"]), "Hello, world.");
  EXPECT_EQ(part["logprobs"][0]["top_logprobs"][0]["token"], "H");
  std::string streamed;
  for (const Json& event :
       EventData(server.Post("/v1/responses", fields + R"(, "stream": true})"))) {
    if (event["type"] == "response.output_text.delta") streamed += Joined(event["logprobs"]);
  }
  EXPECT_EQ(streamed, "Hello, world.");
  const Json plain = server.Post("/v1/responses", R"({"input": "Hi"})").json();
  EXPECT_EQ(plain["output"][0]["content"][0]["logprobs"], Json::array());
}

AnswerEvent Event(Kind kind, const std::string& text) {
  AnswerEvent event;
  event.event.kind = kind;
  event.event.text = text;
  return event;
}

std::vector<int32_t> Ids(const AnswerEvent& event) {
  std::vector<int32_t> ids;
  for (const ShownToken& token : event.tokens) ids.push_back(token.id);
  return ids;
}

TEST(ShownTokens, MarksThoughtsAndCallsShowNone) {
  ShownTokens shown;
  shown.Push(1, "t", {});
  shown.Push(2, "</think>", {});
  shown.Push(3, "\n", {});
  shown.Push(4, "t", {});
  std::vector<AnswerEvent> events = {Event(Kind::kReasoning, "t"), Event(Kind::kText, "t")};
  shown.Match(events);
  EXPECT_EQ(Ids(events[0]), std::vector<int32_t>());
  EXPECT_EQ(Ids(events[1]), std::vector<int32_t>({4}));
  // A call that has the text in it.
  shown.Push(5, "<call>{\"a\": \"x\"}", {});
  shown.Push(6, "</call>", {});
  events = {Event(Kind::kToolBegin, "f"), Event(Kind::kToolEnd, "")};
  shown.Match(events);
  shown.Push(7, "x<", {});
  events = {Event(Kind::kText, "x")};
  shown.Match(events);
  EXPECT_EQ(Ids(events[0]), std::vector<int32_t>({7}));
  // What was held back: the token is known already.
  shown.Push(8, "y", {});
  events = {Event(Kind::kText, "<y")};
  shown.Match(events);
  EXPECT_EQ(Ids(events[0]), std::vector<int32_t>({8}));
  EXPECT_EQ(events[0].tokens[0].offset, 1u);
}

}  // namespace
}  // namespace tq::server

// Several answers to one request: n, several prompts, echo.
#include <map>
#include <set>

#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

TEST(SeveralAnswers, ChatHasAChoiceForEach) {
  TestServer server({.script = "<think>Hm.</think>Hello"});
  const Json answer = server.Post("/v1/chat/completions", HiWith(R"("n": 3, "best_of": 3)")).json();
  ASSERT_EQ(answer["choices"].size(), 3u) << answer;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["message"]["content"], "Hello");
    EXPECT_EQ(answer["choices"][i]["finish_reason"], "stop");
  }
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4) << "once";
  const Json one = server.Post("/v1/chat/completions", kHi).json();
  EXPECT_EQ(answer["usage"]["completion_tokens"].get<int64_t>(),
            3 * one["usage"]["completion_tokens"].get<int64_t>());
}

TEST(SeveralAnswers, AStreamMixesThem) {
  TestServer server({});
  const HttpReply stream = server.Post("/v1/chat/completions", HiWith(R"("n": 2, "stream": true,
      "stream_options": {"include_usage": true})"));
  std::map<int, std::string> texts;
  std::map<int, int> ends;
  for (const Json& chunk : EventData(stream)) {
    if (chunk["choices"].empty()) continue;
    const Json& choice = chunk["choices"][0];
    const int index = choice["index"].get<int>();
    if (choice["delta"].contains("content")) {
      texts[index] += choice["delta"]["content"].get<std::string>();
    }
    if (!choice["finish_reason"].is_null()) ++ends[index];
  }
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "Hello, world."}, {1, "Hello, world."}}));
  EXPECT_EQ(ends, (std::map<int, int>{{0, 1}, {1, 1}}));
  EXPECT_EQ(EventData(stream).back()["usage"]["prompt_tokens"], 4);
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

// The first one is that of a request for one; the others have seeds of their own.
TEST(SeveralAnswers, SeedsAreTheirOwn) {
  TestServer server({.endless = true});
  const std::string sampled =
      R"("temperature": 50, "seed": 3, "max_tokens": 30, "ignore_eos": true)";
  const std::string body = R"({"messages": [{"role": "user", "content": "Hi"}], )" + sampled;
  const Json many = server.Post("/v1/chat/completions", body + R"(, "n": 3})").json();
  const Json one = server.Post("/v1/chat/completions", body + "}").json();
  const Json again = server.Post("/v1/chat/completions", body + R"(, "n": 3})").json();
  EXPECT_EQ(many["choices"][0]["message"], one["choices"][0]["message"]);
  EXPECT_EQ(many["choices"], again["choices"]);
  std::set<std::string> texts;
  for (const Json& choice : many["choices"]) {
    texts.insert(choice["message"]["content"].get<std::string>());
  }
  EXPECT_EQ(texts.size(), 3u);
}

TEST(SeveralAnswers, ThePromptIsComputedOnce) {
  TestServer server({});
  const std::string question(2000, 'q');
  const Json body = {{"messages", {{{"role", "user"}, {"content", question}}}}, {"n", 4}};
  EXPECT_EQ(server.Post("/v1/chat/completions", body.dump()).status, 200);
  EXPECT_GE(server.engine().stats().cached_tokens, 3 * 1900);
}

TEST(SeveralAnswers, ManyPromptsAndEcho) {
  TestServer server({.script = "xyz"});
  const Json answer = server
                          .Post("/v1/completions",
                                R"({"prompt": ["a<|assistant|>", [107, 4]], "n": 2, "echo": true})")
                          .json();
  ASSERT_EQ(answer["choices"].size(), 4u) << answer;
  const char* expected[] = {"a<|assistant|>xyz", "a<|assistant|>xyz", "a<|assistant|>xyz",
                            "a<|assistant|>xyz"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["text"], expected[i]);
  }
  int64_t alone = 0;
  for (const char* body : {R"({"prompt": "a<|assistant|>"})", R"({"prompt": [107, 4]})"}) {
    alone += server.Post("/v1/completions", body).json()["usage"]["prompt_tokens"].get<int64_t>();
  }
  EXPECT_EQ(answer["usage"]["prompt_tokens"], alone) << "each once";
  std::map<int, std::string> texts;
  for (const Json& chunk : EventData(server.Post(
           "/v1/completions",
           R"({"prompt": ["<|assistant|>", "b<|assistant|>"], "echo": true, "stream": true})"))) {
    const Json& choice = chunk["choices"][0];
    texts[choice["index"].get<int>()] += choice["text"].get<std::string>();
  }
  EXPECT_EQ(texts[0], "<|assistant|>xyz");
  EXPECT_EQ(texts[1], "b<|assistant|>xyz");
}

TEST(SeveralAnswers, WhatCannotBeIsRefused) {
  TestServer server({.max_context = 64});
  const auto chat = [&](const char* fields) {
    return server.Post("/v1/chat/completions", HiWith(fields)).status;
  };
  EXPECT_EQ(chat(R"("n": 0)"), 400);
  EXPECT_EQ(chat(R"("n": 129)"), 400);
  EXPECT_EQ(chat(R"("n": 2, "best_of": 3)"), 400);
  EXPECT_EQ(server.Post("/v1/messages", HiWith(R"("n": 2, "max_tokens": 9)")).status, 400);
  EXPECT_EQ(server.Post("/v1/responses", R"({"input": "Hi", "n": 2})").status, 400);
  const std::string prompts = R"({"prompt": ["a", ")" + std::string(100, 'b') + "\"]}";
  const HttpReply reply = server.Post("/v1/completions", prompts);
  EXPECT_EQ(reply.status, 400) << "the longest counts";
  EXPECT_EQ(reply.json()["error"]["code"], "context_length_exceeded");
  // More than fit into the queue: none is computed.
  TestServer small({.engine = {.max_sequences = 1, .max_queue = 2}});
  EXPECT_EQ(small.Post("/v1/chat/completions", HiWith(R"("n": 100)")).status, 429);
}

}  // namespace
}  // namespace tq::server

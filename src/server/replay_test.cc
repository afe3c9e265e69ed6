// The model of `serve --replay`.
#include "server/replay.h"

#include <thread>

#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpClient;
using tq::test::HttpReply;

TestServerOptions WithAnswers(const std::string& json) {
  TestServerOptions options;
  options.make_model = [json](const TextAssets& text) {
    auto answers = ParseReplay(json, "file");
    EXPECT_TRUE(answers.ok()) << answers.status().message();
    auto model = MakeReplayModel(std::move(answers).value(), text, 4096);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  };
  return options;
}

std::string Ask(const TestServer& server, const Json& messages, double temperature = 0) {
  const Json body = {{"messages", messages}, {"temperature", temperature}};
  const Json answer = server.Post("/v1/chat/completions", body.dump()).json();
  return answer["choices"][0]["message"]["content"].get<std::string>();
}

Json User(const std::string& text) { return {{"role", "user"}, {"content", text}}; }

TEST(Replay, SaysTheAnswerWhoseTextStandsLast) {
  const TestServer server(WithAnswers(R"({"answers": [
      {"when": "first", "say": "one"}, {"when": "second", "say": "two"},
      {"when": "second", "say": "never"}, {"when": "third", "unless": "first", "say": "three"},
      {"when": "thirdly", "say": "longer"}]})"));
  EXPECT_EQ(Ask(server, Json::array({User("first")})), "one");
  EXPECT_EQ(Ask(server, Json::array({User("second, first")})), "one");
  EXPECT_EQ(Ask(server, Json::array({User("first, second")})), "two");
  EXPECT_EQ(Ask(server, Json::array({User("first, third")})), "one");
  EXPECT_EQ(Ask(server, Json::array({User("third")})), "three");
  EXPECT_EQ(Ask(server, Json::array({User("first, thirdly")})), "longer");
  EXPECT_EQ(Ask(server, Json::array({User("fourth")})), "(no answer of the replay file applies)");
  // However it samples.
  EXPECT_EQ(Ask(server, Json::array({User("first")}), 2.0), "one");
}

// Each turn is answered by what it adds, through the prefix cache.
TEST(Replay, GoesThroughAConversation) {
  const TestServer server(WithAnswers(R"({"answers": [
      {"when": "ping", "say": "pong and so on until a page of the cache is full, twice: 0123456789 "},
      {"when": "more", "say": "end"}]})"));
  Json messages = Json::array({User(std::string(100, 'x') + "ping")});
  for (int i = 0; i < 3; ++i) {
    const std::string said = Ask(server, messages);
    EXPECT_TRUE(said.starts_with("pong")) << said;
    messages.push_back({{"role", "assistant"}, {"content", said}});
    messages.push_back(User("more"));
    EXPECT_EQ(Ask(server, messages), "end");
    messages.push_back({{"role", "assistant"}, {"content", "end"}});
    messages.push_back(User("ping"));
  }
  EXPECT_NE(server.Get("/metrics").body.find("outcome=\"stop\"} 6"), std::string::npos);
}

TEST(Replay, RepeatsAndEndsWithTheTurn) {
  const TestServer server(WithAnswers(R"({"answers": [{"say": "ab", "repeat": 3}]})"));
  const Json whole = server.Post("/v1/chat/completions", kHi).json();
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "ababab");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  const Json cut = server.Post("/v1/chat/completions", HiWith(R"("max_tokens": 5)")).json();
  EXPECT_EQ(cut["choices"][0]["message"]["content"], "ababa");
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "length");
}

// AP-08: an error in the middle is an object, in all APIs, and nothing comes behind it.
TEST(Replay, AP08_AFailureInTheMiddle) {
  const TestServer server(WithAnswers(R"({"answers": [{"say": "0123456789", "fail": true}]})"));
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/v1/messages"}) {
    const std::string fields = R"("max_tokens": 50, "prompt": "x", "stream": )";
    const HttpReply whole = server.Post(path, HiWith(fields + "false"));
    EXPECT_EQ(whole.status, 500) << path;
    EXPECT_NE(whole.json()["error"]["message"].get<std::string>().find("NaN"), std::string::npos);
    const HttpReply stream = server.Post(path, HiWith(fields + "true"));
    EXPECT_EQ(stream.status, 200);
    EXPECT_NE(stream.body.find('9'), std::string::npos);
    const Json last = EventData(stream).back();
    EXPECT_TRUE(last["error"].is_object()) << last;
    EXPECT_TRUE(last["error"].contains("type") && last["error"].contains("message"));
    EXPECT_EQ(stream.body.find("[DONE]"), std::string::npos);
  }
  EXPECT_EQ(server.Post("/v1/responses", R"({"input": "Hi"})").status, 500);
  const HttpReply stream = server.Post("/v1/responses", R"({"input": "Hi", "stream": true})");
  EXPECT_EQ(EventNames(stream).back(), "response.failed");
  EXPECT_TRUE(EventData(stream).back()["response"]["error"].is_object());
}

TEST(Replay, TakesItsTimeAndIsCancelled) {
  TestServer server(WithAnswers(
      R"({"answers": [{"say": "word ", "repeat": 100000, "wait_ms": 20, "token_ms": 1}]})"));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(server.Post("/v1/chat/completions", HiWith(R"("max_tokens": 20)")).status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20 + 19));
  HttpClient client(server.port());
  client.SendRequest("POST", "/v1/chat/completions", HiWith(R"("stream": true)"));
  ASSERT_TRUE(client.ReadUntil("\"content\":\"w"));
  client.Drop();
  for (int i = 0; i < 500 && server.engine().stats().running > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(server.engine().stats().running, 0);
}

TEST(Replay, BadFilesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "file"},
      {"[]", "answers"},
      {R"({"answers": {}})", "answers"},
      {R"({"answers": [], "more": 1})", "answers"},
      {R"({"answers": ["x"]})", "answers[0]"},
      {R"({"answers": [{"say": "x"}, {"when": "x"}]})", "answers[1]"},
      {R"({"answers": [{"say": 1}]})", "say"},
      {R"({"answers": [{"say": "x", "after": "y"}]})", "after"},
      {R"({"answers": [{"say": "x", "repeat": 0}]})", "repeat"},
      {R"({"answers": [{"say": "x", "wait_ms": -1}]})", "wait_ms"},
      {R"({"answers": [{"say": "x", "token_ms": 99999999}]})", "token_ms"},
  };
  for (const auto& [json, named] : cases) {
    const auto answers = ParseReplay(json, "file");
    ASSERT_FALSE(answers.ok()) << json;
    EXPECT_NE(answers.status().message().find(named), std::string::npos)
        << json << ": " << answers.status().message();
    EXPECT_EQ(answers.status().message().find('\n'), std::string::npos);
  }
}

TEST(Replay, NeedsATokenizerAnEndAndTextsThatComeBack) {
  TextAssets none;
  EXPECT_FALSE(MakeReplayModel({}, none, 100).ok());
  auto tokenizer = Tokenizer::Load(tq::test::ByteTokenizerJson(), "");
  ASSERT_TRUE(tokenizer.ok());
  none.tokenizer = std::move(tokenizer).value();
  EXPECT_FALSE(MakeReplayModel({}, none, 100).ok());
  none.end_ids = {2};
  EXPECT_TRUE(MakeReplayModel({}, none, 100).ok());
  const auto bad = MakeReplayModel({{.say = "a"}, {.say = "\xFF"}}, none, 100);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("answers[1].say"), std::string::npos);
}

}  // namespace
}  // namespace tq::server

// Many clients, slow ones, those that leave, and what happens when there is too much or too little.
#include <future>
#include <thread>

#include "engine/engine_for_test.h"
#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpClient;
using tq::test::HttpReply;

const std::string kStream = HiWith(R"("stream": true)");

// True once the engine has nothing to do.
bool BecomesIdle(const Engine& engine) {
  for (int i = 0; i < 500; ++i) {
    const EngineStats stats = engine.stats();
    if (stats.running == 0 && stats.waiting == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::string Text(const HttpReply& reply) {
  std::string text;
  for (const Json& chunk : EventData(reply)) {
    text += chunk["choices"][0]["delta"].value("content", "");
  }
  return text;
}

// CN-04
TEST(Streams, SixtyFourAtOnce) {
  const std::string script(200, 'x');
  TestServer server({.script = script, .engine = {.kv_tokens = 32768, .max_sequences = 16}});
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->SendRequest("POST", "/v1/chat/completions", kStream);
  }
  for (const auto& client : clients) {
    const HttpReply reply = client->Read();
    EXPECT_TRUE(reply.complete);
    EXPECT_EQ(Text(reply), script);
  }
  EXPECT_TRUE(BecomesIdle(server.engine()));
}

TEST(Streams, ASlowReaderPausesItselfAlone) {
  TestServer server({.script = "0123456789", .endless = true, .max_context = 1 << 17});
  HttpClient slow(server.port());
  slow.SendRequest("POST", "/v1/chat/completions", kStream);
  ASSERT_TRUE(slow.ReadUntil("data: "));
  // It does not read: its sequence stops in the end, though it may go on for ever.
  int64_t steps = -1;
  for (int i = 0; i < 500 && steps != server.engine().stats().steps; ++i) {
    steps = server.engine().stats().steps;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(server.engine().stats().running, 1);
  const Json other = server.Post("/v1/chat/completions", HiWith(R"("max_tokens": 10)")).json();
  EXPECT_EQ(other["choices"][0]["message"]["content"], "0123456789");
  // It reads on: the text goes on where it was.
  std::string seen = slow.seen();
  while (seen.size() < (size_t{12} << 20)) {
    const std::string more = slow.ReadSome(1 << 16);
    ASSERT_FALSE(more.empty());
    seen += more;
  }
  std::string text;
  for (size_t at = seen.find("\"delta\":{\"content\":\""); at != std::string::npos;
       at = seen.find("\"delta\":{\"content\":\"", at + 1)) {
    if (seen[at + 20] != '"') text += seen[at + 20];
  }
  for (size_t i = 0; i < text.size(); ++i) ASSERT_EQ(text[i], static_cast<char>('0' + i % 10));
}

// CN-01, CN-02
TEST(Streams, AClientThatLeavesIsForgottenAtOnce) {
  TestServer server({.endless = true, .max_context = 1 << 20});
  for (const std::string& body : {kStream, std::string(kHi)}) {
    HttpClient client(server.port());
    client.SendRequest("POST", "/v1/chat/completions",
                       body == kHi ? HiWith(R"("max_tokens": 1000000)") : body);
    while (server.engine().stats().running == 0) std::this_thread::yield();
    if (body == kStream) {
      ASSERT_TRUE(client.ReadUntil("content"));
      client.Drop();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      client.Drop();
    }
    EXPECT_TRUE(BecomesIdle(server.engine()));
  }
  EXPECT_NE(server.Get("/metrics").body.find("turboquant_answers_total{outcome=\"cancelled\"} 2"),
            std::string::npos);
}

// CN-01 (a), CN-03
TEST(Streams, AClientThatLeavesWhileItWaits) {
  Gate gate;
  TestServer server({.hook = gate.Hook(), .engine = {.max_sequences = 1}});
  HttpClient first(server.port());
  first.SendRequest("POST", "/v1/chat/completions", kStream);
  gate.WaitEntered(1);
  HttpClient second(server.port());
  second.SendRequest("POST", "/v1/chat/completions", kStream);
  while (server.engine().stats().waiting == 0) std::this_thread::yield();
  second.Drop();
  while (server.http().num_exchanges() > 1) std::this_thread::yield();
  gate.Open();
  EXPECT_EQ(Text(first.Read()), "Hello, world.");
  EXPECT_TRUE(BecomesIdle(server.engine()));
}

TEST(Streams, AFullQueueIs429WithRetryAfter) {
  Gate gate;
  TestServer server({.hook = gate.Hook(), .engine = {.max_sequences = 1, .max_queue = 1}});
  HttpClient first(server.port());
  first.SendRequest("POST", "/v1/chat/completions", kHi);
  gate.WaitEntered(1);
  HttpClient second(server.port());
  second.SendRequest("POST", "/v1/chat/completions", kHi);
  while (server.engine().stats().waiting == 0) std::this_thread::yield();
  const HttpReply openai = server.Post("/v1/chat/completions", kStream);
  EXPECT_EQ(openai.status, 429);
  EXPECT_EQ(openai.headers.at("retry-after"), "1");
  const HttpReply anthropic = server.Post("/v1/messages", kHi);
  EXPECT_EQ(anthropic.status, 429);
  EXPECT_EQ(anthropic.json()["error"]["type"], "rate_limit_error");
  gate.Open();
  EXPECT_EQ(first.Read().status, 200);
  EXPECT_EQ(second.Read().status, 200);
}

// CL-07
TEST(Streams, EventsWhileAPromptIsComputed) {
  Gate gate;
  TestServer server(
      {.hook = gate.Hook(), .service = {.keepalive_interval = std::chrono::milliseconds(30)}});
  HttpClient chat(server.port());
  HttpClient messages(server.port());
  HttpClient responses(server.port());
  chat.SendRequest("POST", "/v1/chat/completions", kStream);
  messages.SendRequest("POST", "/v1/messages", HiWith(R"("stream": true, "max_tokens": 50)"));
  responses.SendRequest("POST", "/v1/responses", R"({"input": "Hi", "stream": true})");
  const std::string empty = R"("delta":{"content":""})";
  EXPECT_TRUE(chat.ReadUntil(empty));
  EXPECT_TRUE(messages.ReadUntil("event: ping"));
  EXPECT_TRUE(responses.ReadUntil("\"sequence_number\":3"));
  EXPECT_NE(responses.seen().find("response.in_progress"), std::string::npos);
  gate.Open();
  EXPECT_EQ(Text(chat.Read()), "Hello, world.");
  EXPECT_EQ(EventNames(messages.Read()).back(), "message_stop");
  EXPECT_EQ(EventNames(responses.Read()).back(), "response.completed");
}

// AP-08
TEST(Streams, AnswersThatTakeTooLongEndWithAnError) {
  TestServer server({.endless = true, .max_context = 1 << 20, .service = {.timeout_seconds = 0.2}});
  const HttpReply whole = server.Post("/v1/chat/completions", HiWith(R"("max_tokens": 1000000)"));
  EXPECT_EQ(whole.status, 504);
  const Json chat = EventData(server.Post("/v1/chat/completions", kStream)).back();
  EXPECT_EQ(chat["error"]["code"], "timeout");
  const HttpReply messages =
      server.Post("/v1/messages", HiWith(R"("stream": true, "max_tokens": 1000000)"));
  EXPECT_EQ(EventNames(messages).back(), "error");
  EXPECT_EQ(EventData(messages).back()["error"]["type"], "timeout_error");
  const HttpReply responses = server.Post("/v1/responses", R"({"input": "Hi", "stream": true})");
  EXPECT_EQ(EventNames(responses).back(), "response.failed");
  EXPECT_TRUE(EventData(responses).back()["response"]["error"].is_object());
  EXPECT_TRUE(BecomesIdle(server.engine()));
}

TEST(Streams, AResponseIsCancelledByItsId) {
  TestServer server({.endless = true, .max_context = 1 << 20});
  HttpClient client(server.port());
  client.SendRequest("POST", "/v1/responses", R"({"input": "Hi", "stream": true})");
  ASSERT_TRUE(client.ReadUntil("output_text.delta"));
  const size_t at = client.seen().find("resp_");
  const std::string id = client.seen().substr(at, 37);
  const HttpReply reply = server.Post("/v1/responses/" + id + "/cancel", "");
  EXPECT_EQ(reply.json()["status"], "cancelled");
  const HttpReply stream = client.Read();
  EXPECT_EQ(EventData(stream).back()["response"]["status"], "cancelled");
  EXPECT_TRUE(BecomesIdle(server.engine()));
  EXPECT_EQ(server.Post("/v1/responses/" + id + "/cancel", "").status, 404);
}

TEST(Streams, TheServerEndsWithStreamsOpen) {
  auto server =
      std::make_unique<TestServer>(TestServerOptions{.endless = true, .max_context = 1 << 20});
  HttpClient client(server->port());
  client.SendRequest("POST", "/v1/chat/completions", kStream);
  ASSERT_TRUE(client.ReadUntil("content"));
  server.reset();
  EXPECT_FALSE(client.Read().complete);
}

}  // namespace
}  // namespace tq::server

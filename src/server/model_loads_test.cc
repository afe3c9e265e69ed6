// Loads on the way to an answer: waiting, switches, failures, clients that leave.
#include "engine/engine_for_test.h"
#include "server/models_for_test.h"

namespace tq::server {
namespace {

using std::chrono::milliseconds;
using tq::test::HttpClient;
using tq::test::HttpReply;

TEST(ModelLoads, AStreamThatWaitsForALoadIsKeptAlive) {
  LoadGate gate;
  gate.Close();
  TestServerOptions options = Two(&gate);
  options.service.keepalive_interval = milliseconds(30);
  TestServer server(std::move(options));
  HttpClient chat(server.port());
  HttpClient messages(server.port());
  HttpClient responses(server.port());
  HttpClient whole(server.port());
  chat.SendRequest("POST", "/v1/chat/completions", Ask("second", R"(, "stream": true)"));
  messages.SendRequest("POST", "/v1/messages", Ask("second", R"(, "stream": true)"));
  responses.SendRequest("POST", "/v1/responses",
                        R"({"input": "Hi", "model": "second", "stream": true})");
  whole.SendRequest("POST", "/v1/chat/completions", Ask("second"));
  EXPECT_TRUE(chat.ReadUntil(R"("delta":{"content":""})"));
  EXPECT_TRUE(messages.ReadUntil("event: ping"));
  EXPECT_TRUE(responses.ReadUntil("\"sequence_number\":3"));
  EXPECT_NE(server.Get("/v1/models/second").body.find("loading"), std::string::npos);
  gate.Open();
  std::string text;
  int roles = 0;
  for (const Json& chunk : EventData(chat.Read())) {
    const Json& delta = chunk["choices"][0]["delta"];
    text += delta.value("content", "");
    roles += delta.contains("role");
  }
  EXPECT_EQ(text, "I am second.");
  EXPECT_EQ(roles, 1) << "it begins once";
  EXPECT_EQ(EventNames(messages.Read()).back(), "message_stop");
  EXPECT_EQ(EventNames(responses.Read()).back(), "response.completed");
  EXPECT_EQ(Said(whole.Read()), "I am second.");
  EXPECT_EQ(Loads(server, 1), 1);
}

TEST(ModelLoads, OthersAnswerWhileOneLoads) {
  LoadGate gate;
  TestServer server(Two(&gate));
  server.Post("/v1/chat/completions", Ask("first"));
  gate.Close();
  HttpClient waits(server.port());
  waits.SendRequest("POST", "/v1/chat/completions", Ask("second"));
  gate.WaitLoading(2);
  EXPECT_EQ(Said(server.Post("/v1/chat/completions", Ask("first"))), "I am first.");
  gate.Open();
  EXPECT_EQ(Said(waits.Read()), "I am second.");
}

TEST(ModelLoads, TheySwitchWithinALimit) {
  TestServerOptions options = Two();
  options.pool.memory_bytes = 1500;
  TestServer server(std::move(options));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Said(server.Post("/v1/chat/completions", Ask("first"))), "I am first.");
    EXPECT_EQ(Said(server.Post("/v1/chat/completions", Ask("second"))), "I am second.");
  }
  const std::string metrics = server.Get("/metrics").body;
  for (const char* line : {
           "turboquant_model_loads_total{model=\"first\"} 3",
           "turboquant_model_unloads_total{model=\"first\"} 3",
           "turboquant_model_unloads_total{model=\"second\"} 2",
           "turboquant_model_loaded{model=\"second\"} 1",
           "turboquant_model_memory_bytes{model=\"second\"} 1000",
           "turboquant_requests_waiting{model=\"first\"} 0",
           "turboquant_answers_total{model=\"first\",outcome=\"stop\"} 3",
           "turboquant_kv_pages{model=\"second\"} 64",
       }) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << "\n" << metrics;
  }
  EXPECT_EQ(metrics.find("turboquant_kv_pages{model=\"first\"}"), std::string::npos);
}

TEST(ModelLoads, ALoadThatFailsIsAnErrorAndTheNextRequestTriesAgain) {
  LoadGate gate;
  TestServer server(Two(&gate));
  const Status failure = OutOfMemory("memory: expected 9 GB, found 8 GB");
  gate.OpenWith(failure);
  const HttpReply openai = server.Post("/v1/chat/completions", Ask("first"));
  EXPECT_EQ(openai.status, 503);
  EXPECT_EQ(openai.json()["error"]["code"], "out_of_memory");
  EXPECT_EQ(openai.json()["error"]["message"], failure.message());
  gate.OpenWith(failure);
  const HttpReply stream = server.Post("/v1/chat/completions", Ask("first", R"(, "stream": true)"));
  EXPECT_EQ(stream.status, 503) << "nothing was said yet";
  gate.OpenWith(failure);
  const HttpReply anthropic = server.Post("/v1/messages", Ask("second"));
  EXPECT_EQ(anthropic.status, 503);
  EXPECT_EQ(anthropic.json()["error"]["type"], "overloaded_error");
  EXPECT_EQ(Said(server.Post("/v1/chat/completions", Ask("first"))), "I am first.");
  EXPECT_NE(
      server.Get("/metrics").body.find("turboquant_model_load_failures_total{model=\"first\"} 2"),
      std::string::npos);
}

TEST(ModelLoads, AStreamThatHasBegunEndsWithTheErrorOfTheLoad) {
  LoadGate gate;
  gate.Close();
  TestServerOptions options = Two(&gate);
  options.service.keepalive_interval = milliseconds(30);
  TestServer server(std::move(options));
  HttpClient chat(server.port());
  chat.SendRequest("POST", "/v1/chat/completions", Ask("first", R"(, "stream": true)"));
  EXPECT_TRUE(chat.ReadUntil(R"("delta":{"content":""})"));
  gate.OpenWith(IoError("the disk is gone"));
  const HttpReply reply = chat.Read();
  EXPECT_EQ(EventData(reply).back()["error"]["message"], "the disk is gone");
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
}

TEST(ModelLoads, AClientThatLeavesWhileAModelLoads) {
  LoadGate gate;
  gate.Close();
  TestServer server(Two(&gate));
  HttpClient client(server.port());
  client.SendRequest("POST", "/v1/chat/completions", Ask("first"));
  gate.WaitLoading(1);
  EXPECT_EQ(server.service().pool().Stats()[0].waiting, 1);
  client.Drop();
  EXPECT_TRUE(ModelsBecomeIdle(server)) << "it has left the queue";
  gate.Open();
  EXPECT_EQ(Said(server.Post("/v1/chat/completions", Ask("first"))), "I am first.");
}

TEST(ModelLoads, TheTimeLimitCountsTheLoad) {
  LoadGate gate;
  gate.Close();
  TestServerOptions options = Two(&gate);
  options.service.timeout_seconds = 0.1;
  TestServer server(std::move(options));
  EXPECT_EQ(server.Post("/v1/chat/completions", Ask("first")).status, 504);
  EXPECT_EQ(server.Post("/v1/messages", Ask("first", R"(, "stream": true)")).status, 504);
  EXPECT_TRUE(ModelsBecomeIdle(server));
  gate.Open();
}

TEST(ModelLoads, AResponseThatWaitsIsCancelledByItsId) {
  LoadGate gate;
  gate.Close();
  TestServerOptions options = Two(&gate);
  options.service.keepalive_interval = milliseconds(20);
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.SendRequest("POST", "/v1/responses", R"({"input": "Hi", "stream": true})");
  ASSERT_TRUE(client.ReadUntil("response.created"));
  ASSERT_TRUE(client.ReadUntil("resp_"));
  const std::string id = client.seen().substr(client.seen().find("resp_"), 37);
  EXPECT_EQ(server.Post("/v1/responses/" + id + "/cancel", "").json()["status"], "cancelled");
  EXPECT_EQ(EventData(client.Read()).back()["response"]["status"], "cancelled");
  EXPECT_TRUE(ModelsBecomeIdle(server));
  gate.Open();
}

TEST(ModelLoads, ALongAnswerIsNotCutByASwitch) {
  Gate gate;
  TestServerOptions options;
  options.models.push_back(Says("slow", "A long answer.", nullptr, gate.Hook()));
  options.models.push_back(Says("second", "I am second."));
  options.pool.max_loaded = 1;
  TestServer server(std::move(options));
  HttpClient slow(server.port());
  slow.SendRequest("POST", "/v1/chat/completions", Ask("slow"));
  gate.WaitEntered(1);
  HttpClient second(server.port());
  second.SendRequest("POST", "/v1/chat/completions", Ask("second"));
  while (server.service().pool().Stats()[1].waiting == 0) std::this_thread::yield();
  gate.Open();
  EXPECT_EQ(Said(slow.Read()), "A long answer.");
  EXPECT_EQ(Said(second.Read()), "I am second.");
}

TEST(ModelLoads, APrefixCacheEndsWithItsModel) {
  TestServerOptions options = Two();
  options.pool.max_loaded = 1;
  TestServer server(std::move(options));
  const std::string body = R"({"model": "first", "prompt": ")" + std::string(200, 'x') + "\"}";
  const auto cached = [&] {
    return server.Post("/v1/completions", body)
        .json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        .get<int64_t>();
  };
  EXPECT_EQ(cached(), 0);
  EXPECT_GE(cached(), 128);
  server.Post("/v1/chat/completions", Ask("second"));
  EXPECT_EQ(cached(), 0);
}

}  // namespace
}  // namespace tq::server

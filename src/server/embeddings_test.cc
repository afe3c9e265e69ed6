// /v1/embeddings.
#include <atomic>
#include <bit>
#include <cmath>
#include <thread>

#include "server/server_for_test.h"
#include "tokenizer/base64.h"

namespace tq::server {
namespace {

using tq::test::kFirstByteId;
using tq::test::ScriptModel;

// The hidden state of a token is (its id, its position, 1, -2).
class HiddenScript final : public ScriptModel {
 public:
  static constexpr int64_t kHidden = 4;
  explicit HiddenScript(ScriptModel::StepHook hook)
      : ScriptModel("Hello", false, std::move(hook), 512) {}
  int64_t hidden_size() const override { return kHidden; }
  void ForwardHidden(const StepPlan& plan, KvCache& cache, float* logits,
                     const HiddenRows& hidden) override {
    Forward(plan, cache, logits);
    float* row = hidden.rows;
    for (const int32_t token : hidden.tokens) {
      const auto i = static_cast<size_t>(token);
      for (const float value :
           {static_cast<float>(plan.ids[i]), static_cast<float>(plan.positions[i]), 1.0f, -2.0f}) {
        *row++ = value;
      }
    }
  }
};

TestServerOptions WithEmbeddings(ServiceOptions service = {}, ScriptModel::StepHook hook = {}) {
  TestServerOptions options;
  options.service = std::move(service);
  options.engine = {.max_sequences = 3, .max_queue = 4, .prefill_chunk = 8, .embeddings = true};
  options.load_text = [](TextAssets& text) {
    auto tokenizer = Tokenizer::Load(tq::test::ByteTokenizerJson(), "");
    text.tokenizer = std::move(tokenizer).value();
  };
  options.make_model = [hook](const TextAssets&) { return std::make_unique<HiddenScript>(hook); };
  return options;
}

std::vector<float> Unit(std::vector<double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  std::vector<float> out;
  for (const double value : values) out.push_back(static_cast<float>(value / std::sqrt(sum)));
  return out;
}

std::vector<float> VectorOf(const Json& reply, size_t index = 0) {
  const Json& item = reply["data"][index];
  EXPECT_EQ(item["object"], "embedding");
  EXPECT_EQ(item["index"], index);
  return item["embedding"].get<std::vector<float>>();
}

TEST(Embeddings, OfEveryFormOfInput) {
  const TestServer server(WithEmbeddings());
  const auto b = static_cast<double>('b' + kFirstByteId);
  const Json text = server.Post("/v1/embeddings", R"({"input": "ab", "model": "m"})").json();
  EXPECT_EQ(text["object"], "list");
  EXPECT_EQ(text["model"], "m");
  const int64_t tokens = text["usage"]["prompt_tokens"];
  EXPECT_EQ(text["usage"]["total_tokens"], tokens);
  EXPECT_EQ(VectorOf(text), Unit({b, static_cast<double>(tokens - 1), 1, -2}));

  const Json texts = server.Post("/v1/embeddings", R"({"input": ["ab", "b"]})").json();
  EXPECT_EQ(VectorOf(texts, 0), VectorOf(text));
  EXPECT_EQ(VectorOf(texts, 1), Unit({b, static_cast<double>(tokens - 2), 1, -2}));
  EXPECT_EQ(texts["usage"]["prompt_tokens"], 2 * tokens - 1);
  EXPECT_EQ(texts["model"], "test-model");

  const Json ids = server.Post("/v1/embeddings", R"({"input": [7, 9]})").json();
  EXPECT_EQ(VectorOf(ids), Unit({9, 1, 1, -2}));
  const Json lists = server.Post("/v1/embeddings", R"({"input": [[7, 9], [5]]})").json();
  EXPECT_EQ(VectorOf(lists, 0), VectorOf(ids));
  EXPECT_EQ(VectorOf(lists, 1), Unit({5, 0, 1, -2}));
  EXPECT_EQ(lists["usage"]["prompt_tokens"], 3);
}

TEST(Embeddings, PoolingOfTheFlag) {
  const TestServer mean(WithEmbeddings({.embedding_pooling = Pooling::kMean}));
  const TestServer cls(WithEmbeddings({.embedding_pooling = Pooling::kFirst}));
  const char* body = R"({"input": [7, 9, 20]})";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(VectorOf(mean.Post("/v1/embeddings", body).json()), Unit({12, 1, 1, -2}));
    EXPECT_EQ(VectorOf(cls.Post("/v1/embeddings", body).json()), Unit({7, 0, 1, -2}));
  }
}

TEST(Embeddings, OfTheCheckpoint) {
  TestServerOptions options = WithEmbeddings();
  options.load_text = [load = options.load_text](TextAssets& text) {
    load(text);
    text.embedding = {.pooling = Pooling::kMean, .normalize = false};
  };
  const TestServer server(options);
  const char* body = R"({"input": [7, 9, 20]})";
  EXPECT_EQ(VectorOf(server.Post("/v1/embeddings", body).json()),
            (std::vector<float>{12, 1, 1, -2}));
  options.load_text = [load = options.load_text](TextAssets& text) {
    load(text);
    text.embedding_status = Unsupported("modules.json: expected something else");
  };
  const TestServer other(options);
  const auto reply = other.Post("/v1/embeddings", body);
  EXPECT_EQ(reply.status, 501);
  EXPECT_NE(reply.body.find("modules.json"), std::string::npos);
}

TEST(Embeddings, Base64AndDimensions) {
  const TestServer server(WithEmbeddings());
  const Json floats = server.Post("/v1/embeddings", R"({"input": [7, 9]})").json();
  const std::string text =
      server.Post("/v1/embeddings", R"({"input": [7, 9], "encoding_format": "base64"})")
          .json()["data"][0]["embedding"];
  std::string want;
  for (const float value : VectorOf(floats)) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) want += static_cast<char>(bits >> shift & 255);
  }
  EXPECT_EQ(tok::DecodeBase64(text), want);
  const Json cut = server.Post("/v1/embeddings", R"({"input": [7, 9], "dimensions": 2})").json();
  const std::vector<float> vector = VectorOf(cut);
  ASSERT_EQ(vector.size(), 2u);
  EXPECT_NEAR(vector[0], 9 / std::sqrt(82.0), 1e-6);
  EXPECT_NEAR(vector[1], 1 / std::sqrt(82.0), 1e-6);
}

TEST(Embeddings, WhatIsWrongIsNamed) {
  const TestServer server(WithEmbeddings());
  const std::pair<std::string, const char*> cases[] = {
      {R"({})", "input"},
      {R"({"input": ""})", "input"},
      {R"({"input": []})", "input"},
      {R"({"input": ["a", ""]})", "input[1]"},
      {R"({"input": [1, "a"]})", "input[1]"},
      {R"({"input": [99999]})", "input[0]"},
      {R"({"input": {"a": 1}})", "input"},
      {R"({"input": "a", "encoding_format": "hex"})", "encoding_format"},
      {R"({"input": "a", "dimensions": 0})", "dimensions"},
      {R"({"input": "a", "dimensions": 5})", "dimensions"},
  };
  for (const auto& [body, param] : cases) {
    const auto reply = server.Post("/v1/embeddings", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(reply.json()["error"]["param"], param) << body << reply.body;
    EXPECT_EQ(reply.json()["error"]["type"], "invalid_request_error") << body;
  }
  const auto long_one =
      server.Post("/v1/embeddings", R"({"input": ["a", ")" + std::string(600, 'a') + R"("]})");
  EXPECT_EQ(long_one.status, 400);
  const Json error = long_one.json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_NE(error["message"].get<std::string>().find("512"), std::string::npos) << error;
  EXPECT_NE(error["message"].get<std::string>().find("60"), std::string::npos) << error;
  // A model without hidden states.
  const TestServer without({});
  EXPECT_EQ(without.Post("/v1/embeddings", R"({"input": "a"})").status, 501);
}

// More inputs than places, queue and chunk have room for, beside answers.
TEST(Embeddings, ManyInputsBesideAnswers) {
  TestServerOptions options = WithEmbeddings();
  const TestServer server(options);
  Json inputs = Json::array();
  for (int i = 0; i < 100; ++i) inputs.push_back(Json::array({20, 30, 40 + i}));
  const std::string body = Json{{"input", inputs}}.dump();
  std::thread other([&server] {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": "<|assistant|>", "max_tokens": 5})")
                    .json()["choices"][0]["text"],
                "Hello");
    }
  });
  const Json reply = server.Post("/v1/embeddings", body).json();
  other.join();
  ASSERT_EQ(reply["data"].size(), 100u);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(VectorOf(reply, i), Unit({40.0 + static_cast<double>(i), 2, 1, -2}));
  }
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 300);
}

TEST(Embeddings, AClientThatLeavesEndsThem) {
  std::atomic<int> steps = 0;
  TestServer server(WithEmbeddings({}, [&steps](const StepPlan&) {
    ++steps;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }));
  Json inputs = Json::array();
  for (int i = 0; i < 200; ++i) inputs.push_back(std::vector<int>(400, 20 + i % 200));
  {
    tq::test::HttpClient client(server.port());
    client.SendRequest("POST", "/v1/embeddings", Json{{"input", inputs}}.dump());
    while (steps == 0) std::this_thread::yield();
    client.Drop();
  }
  for (int i = 0; i < 2000 && server.engine().stats().running > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(server.engine().stats().running, 0);
  EXPECT_LT(steps, 2000);
}

TEST(Embeddings, ATimeoutIsTold) {
  const TestServer server(WithEmbeddings({.timeout_seconds = 0.1}, [](const StepPlan&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }));
  const std::string body = Json{{"input", std::vector<int>(400, 20)}}.dump();
  EXPECT_EQ(server.Post("/v1/embeddings", body).status, 504);
}

}  // namespace
}  // namespace tq::server

// Several models behind one server: which one answers, and what each keeps for itself.
#include "server/models_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

struct Prompts {
  std::mutex mutex;
  std::vector<int32_t> ids;  // of all steps
};

// What a model was given, as text.
std::string SeenText(Prompts& prompts) {
  const std::lock_guard lock(prompts.mutex);
  std::string text;
  for (const int32_t id : prompts.ids) {
    if (id >= tq::test::kFirstByteId) text += static_cast<char>(id - tq::test::kFirstByteId);
  }
  return text;
}

TEST(SeveralModels, TheRequestNamesOne) {
  TestServer server(Two());
  const HttpReply second = server.Post("/v1/chat/completions", Ask("second"));
  EXPECT_EQ(Said(second), "I am second.");
  EXPECT_EQ(second.json()["model"], "second");
  EXPECT_EQ(Said(server.Post("/v1/chat/completions", Ask("zweites/modell"))), "I am second.");
  EXPECT_EQ(Loads(server, 0), 0);
  EXPECT_EQ(Said(server.Post("/v1/chat/completions", kHi)), "I am first.") << "no name";
  EXPECT_EQ(server.Post("/v1/messages", Ask("second")).json()["content"][0]["text"],
            "I am second.");
  EXPECT_EQ(server.Post("/v1/completions", R"({"model": "second", "prompt": "x"})")
                .json()["choices"][0]["text"],
            "I am second.");
}

TEST(SeveralModels, AnUnknownNameIs404AndListsThem) {
  TestServer server(Two());
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/tokenize", "/detokenize"}) {
    const Json error = server.Post(path, Ask("third")).json()["error"];
    EXPECT_EQ(error["code"], "model_not_found") << path;
    EXPECT_EQ(error["message"], "model: expected one of \"first\", \"second\", found \"third\"");
  }
  const HttpReply anthropic = server.Post("/v1/messages", Ask("third"));
  EXPECT_EQ(anthropic.status, 404);
  EXPECT_EQ(anthropic.json()["error"]["type"], "not_found_error");
  EXPECT_EQ(server.Get("/props?model=third").status, 404);
  EXPECT_EQ(server.Get("/v1/models/third").json()["error"]["code"], "model_not_found");
}

TEST(SeveralModels, AllAreListed) {
  TestServer server(Two());
  server.Post("/v1/chat/completions", Ask("second"));
  const Json list = server.Get("/v1/models").json();
  std::vector<std::string> ids;
  for (const Json& model : list["data"]) {
    ids.push_back(model["id"].get<std::string>() + " " +
                  model["status"]["value"].get<std::string>());
  }
  EXPECT_EQ(ids,
            (std::vector<std::string>{"first unloaded", "second loaded", "zweites/modell loaded"}));
  EXPECT_EQ(list["first_id"], "first");
  EXPECT_EQ(list["last_id"], "zweites/modell");
  EXPECT_EQ(server.Get("/v1/models/zweites/modell").json()["id"], "zweites/modell");
  EXPECT_EQ(server.Get("/v1/models/first").json()["context_length"], 4096);
  const Json health = server.Get("/health").json();
  EXPECT_EQ(health["loaded"], Json::array({"second"}));
}

TEST(SeveralModels, TwoOfOneNameAreRefused) {
  std::vector<ModelEntry> models;
  models.push_back(Says("same", "a"));
  models.push_back(Says("other", "b"));
  models[1].card.aliases = {"same"};
  const auto service = Service::Create(std::move(models), {}, {}, ServerLog());
  ASSERT_FALSE(service.ok());
  EXPECT_NE(service.status().message().find("\"same\""), std::string::npos);
}

TEST(SeveralModels, WhatNeedsNoWeightsLoadsNone) {
  TestServer server(Two());
  EXPECT_EQ(server.Get("/props?model=second").json()["model"], "second");
  EXPECT_EQ(server.Get("/props").json()["models"], Json::array({"first", "second"}));
  EXPECT_EQ(server.Get("/props").json()["state"], "unloaded");
  EXPECT_GT(server.Post("/v1/messages/count_tokens", Ask("second")).json()["input_tokens"], 2);
  const Json tokens = server.Post("/tokenize", R"({"model": "second", "content": "ab"})").json();
  EXPECT_EQ(tokens["tokens"], Json::array({107, 108}));
  EXPECT_EQ(server.Post("/detokenize", R"({"model": "second", "tokens": [107]})").json()["content"],
            "a");
  // Nor does a request that is refused.
  const std::string words(5000, 'x');
  const HttpReply longer =
      server.Post("/v1/completions", R"({"model": "second", "prompt": ")" + words + "\"}");
  EXPECT_EQ(longer.json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(server.Post("/v1/chat/completions", Ask("second", ", \"temperature\": -1")).status,
            400);
  EXPECT_NE(server.Get("/metrics").body.find("turboquant_model_loaded{model=\"second\"} 0"),
            std::string::npos);
  EXPECT_EQ(Loads(server, 0) + Loads(server, 1), 0);
}

// ME-04: in the API's own words, and the next request is served.
// The other model has its own template, tokenizer and memory of what it said.
TEST(SeveralModels, AResponseIsContinuedByAnotherModel) {
  Prompts seen;
  const auto hook = [&seen](const StepPlan& plan) {
    const std::lock_guard lock(seen.mutex);
    seen.ids.insert(seen.ids.end(), plan.ids.begin(), plan.ids.end());
  };
  TestServerOptions options;
  options.models.push_back(Says("first", "I am first."));
  options.models.push_back(Says("second", "I am second.", nullptr, hook, "#"));
  TestServer server(std::move(options));
  const std::string words(100, 'w');
  const Json one =
      server.Post("/v1/responses", R"({"model": "first", "input": ")" + words + "\"}").json();
  const Json two = server
                       .Post("/v1/responses", R"({"model": "second", "input": "And you?",
                                "previous_response_id": ")" +
                                                  one["id"].get<std::string>() + "\"}")
                       .json();
  EXPECT_EQ(two["output"][0]["content"][0]["text"], "I am second.");
  EXPECT_EQ(two["model"], "second");
  EXPECT_EQ(two["usage"]["input_tokens_details"]["cached_tokens"], 0);
  const std::string prompt = "#" + words + "#I am first.#And you?";
  EXPECT_EQ(SeenText(seen).substr(0, prompt.size()), prompt);
  // The first one goes on where it was.
  const Json three = server
                         .Post("/v1/responses", R"({"model": "first", "input": "Once more.",
                                "previous_response_id": ")" +
                                                    one["id"].get<std::string>() + "\"}")
                         .json();
  EXPECT_GE(three["usage"]["input_tokens_details"]["cached_tokens"], 64);
}

TEST(SeveralModels, OneModelHasNoLabels) {
  TestServer server({});
  server.Post("/v1/chat/completions", kHi);
  const std::string metrics = server.Get("/metrics").body;
  EXPECT_NE(metrics.find("\nturboquant_kv_pages "), std::string::npos);
  EXPECT_NE(metrics.find("\nturboquant_generated_tokens_total 13"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("turboquant_model_loads_total{model=\"test-model\"} 1"),
            std::string::npos);
}

}  // namespace
}  // namespace tq::server

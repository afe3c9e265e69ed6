// The doors: what GenerateRequest and EngineOptions refuse, and in which words.
#include "engine/request.h"

#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/fake_model.h"

namespace tq {
namespace {

GenerateRequest Request(int64_t prompt_length, int64_t max_tokens) {
  GenerateRequest request;
  request.prompt.assign(static_cast<size_t>(prompt_length), 1);
  request.max_tokens = max_tokens;
  return request;
}

// For a vocabulary of 97 ids and a context of 100.
std::string Refusal(const GenerateRequest& request) {
  const Status status = request.Validate(97, 100);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return status.message();
}

TEST(GenerateRequest, RefusesABadPrompt) {
  GenerateRequest request = Request(0, 5);
  EXPECT_EQ(Refusal(request),
            "prompt: expected at least one id, found none; start with the BOS id");
  EXPECT_TRUE(Request(99, 5).Validate(97, 100).ok());
  EXPECT_EQ(Refusal(Request(100, 5)),
            "prompt: expected at most 99 ids (a context of 100 tokens less one for the answer), "
            "found 100; shorten it or raise the context");
  request.prompt = {1, 97};
  EXPECT_EQ(Refusal(request),
            "prompt[1]: expected an id in [0, 97), found 97; use the tokenizer of this model");
  request.prompt = {-1};
  EXPECT_NE(Refusal(request).find("prompt[0]"), std::string::npos);
}

TEST(GenerateRequest, RefusesBadLimits) {
  EXPECT_EQ(Refusal(Request(5, 0)),
            "max_tokens: expected a number >= 1, or -1 for the whole context, found 0");
  EXPECT_NE(Refusal(Request(5, -2)).find("max_tokens"), std::string::npos);
  EXPECT_TRUE(Request(5, -1).Validate(97, 100).ok());
  GenerateRequest request = Request(5, 5);
  request.min_tokens = -1;
  EXPECT_NE(Refusal(request).find("min_tokens"), std::string::npos);
  request.sampling.top_p = 2.0f;
  request.min_tokens = 0;
  EXPECT_NE(Refusal(request).find("top_p"), std::string::npos);
}

TEST(GenerateRequest, RefusesBadExtras) {
  GenerateRequest request = Request(5, 5);
  request.num_logprobs = 20;
  EXPECT_TRUE(request.Validate(97, 100).ok());
  request.num_logprobs = 21;
  EXPECT_EQ(Refusal(request), "logprobs: expected 0 to 20 alternatives, found 21");
  request.num_logprobs = -1;
  request.loop_limit = 1;
  EXPECT_EQ(Refusal(request), "loop_limit: expected a number >= 2, or 0 for off, found 1");
}

TEST(GenerateRequest, RefusesEndIdsThatLeaveNothingToSay) {
  GenerateRequest request = Request(5, 5);
  request.end_ids.resize(97);
  std::iota(request.end_ids.begin(), request.end_ids.end(), 0);
  EXPECT_TRUE(request.Validate(97, 100).ok());
  request.min_tokens = 1;
  EXPECT_NE(Refusal(request).find("all 97 of the vocabulary"), std::string::npos);
  request.min_tokens = 0;
  request.ignore_end = true;
  EXPECT_NE(Refusal(request).find("ignore_end: expected"), std::string::npos);
  request.min_tokens = 1;
  request.end_ids.back() = 97;  // beyond the vocabulary: does not count
  EXPECT_TRUE(request.Validate(97, 100).ok());
}

TEST(Engine, SubmitRefusesWhatTheRequestRefuses) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(100), {});
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->Submit(Request(100, 5)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ((*engine)->Submit(Request(0, 5)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ((*engine)->stats().steps, 0);
}

EngineOptions Filled(const EngineOptions& options) {
  const auto engine = Engine::Create(std::make_unique<FakeModel>(), options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return (*engine)->options();
}

TEST(EngineOptions, ZerosAreFilledIn) {
  EXPECT_EQ(Filled({}).max_context, 4096);
  EXPECT_EQ(Filled({}).kv_tokens, 4096);
  EXPECT_EQ(Filled({.kv_tokens = 300}).max_context, 300);
  EXPECT_EQ(Filled({.kv_tokens = 9000}).max_context, 4096);
  EXPECT_EQ(Filled({.max_context = 50}).kv_tokens, 50);
}

TEST(EngineOptions, RefusesWhatMakesNoSense) {
  const auto message = [](const EngineOptions& options) {
    const auto engine = Engine::Create(std::make_unique<FakeModel>(), options);
    EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
    return engine.status().message();
  };
  EXPECT_EQ(message({.max_context = 5000}),
            "max_context: expected at most the model's 4096 positions, found 5000");
  EXPECT_EQ(message({.max_context = 200, .kv_tokens = 100}),
            "kv_tokens: expected at least max_context = 200, found 100; raise kv_tokens or lower "
            "max_context");
  EXPECT_EQ(message({.max_context = 1}),
            "max_context: expected a number in [2, 1073741824], found 1");
  EXPECT_NE(message({.kv_tokens = -1}).find("kv_tokens"), std::string::npos);
  EXPECT_NE(message({.max_sequences = 0}).find("max_sequences"), std::string::npos);
  EXPECT_NE(message({.max_queue = 0}).find("max_queue"), std::string::npos);
  EXPECT_NE(message({.prefill_chunk = 0}).find("prefill_chunk"), std::string::npos);
}

}  // namespace
}  // namespace tq

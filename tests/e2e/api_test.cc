// The public C++ API on a tiny checkpoint.
#include <algorithm>

#include <gtest/gtest.h>

#include "e2e/program.h"
#include "e2e/small_checkpoint.h"
#include "turboquant/turboquant.h"

namespace tq::test {
namespace {

class Api : public testing::Test {
 protected:
  void SetUp() override {
    WriteSmallCheckpoint(folder_ / "model");
    auto model = turboquant::Model::Load(folder_ / "model", {.threads = 1});
    ASSERT_TRUE(model) << model.error();
    model_ = std::move(*model);
  }
  TempFolder folder_;
  std::unique_ptr<turboquant::Model> model_;
};

TEST_F(Api, StreamsWhatItReturns) {
  std::string streamed;
  const auto answer =
      model_->Generate("hi", {.max_tokens = 20, .min_tokens = 20}, [&](std::string_view piece) {
        streamed += piece;
        return true;
      });
  ASSERT_TRUE(answer) << answer.error();
  EXPECT_EQ(answer->text, streamed);
  EXPECT_EQ(answer->ids.size(), 20u);
  EXPECT_EQ(answer->prompt_tokens, 5);
  EXPECT_EQ(answer->finish_reason, turboquant::FinishReason::kLength);
  const auto by_ids =
      model_->GenerateFromIds({1, 3, 114, 115, 4}, {.max_tokens = 20, .min_tokens = 20});
  ASSERT_TRUE(by_ids) << by_ids.error();
  EXPECT_EQ(by_ids->ids, answer->ids);
}

TEST_F(Api, TheCallbackCanStop) {
  int pieces = 0;
  const auto answer = model_->Generate("hi", {.max_tokens = 400, .min_tokens = 400},
                                       [&](std::string_view) { return ++pieces < 3; });
  ASSERT_TRUE(answer) << answer.error();
  EXPECT_EQ(answer->finish_reason, turboquant::FinishReason::kCancelled);
  EXPECT_LT(answer->ids.size(), 400u);
}

TEST_F(Api, TextAndIds) {
  const auto ids = model_->Tokenize("<s>a b");
  ASSERT_TRUE(ids) << ids.error();
  EXPECT_EQ(*ids, (std::vector<int32_t>{1, 107, 42, 108}));
  EXPECT_EQ(*model_->Detokenize(*ids), "a b");
  EXPECT_EQ(*model_->Detokenize(*ids, false), "<s>a b");
  EXPECT_EQ(model_->vocab_size(), 320);
  EXPECT_EQ(model_->max_context(), 512);
}

TEST_F(Api, ManyAnswersWithTheirSeedsAndLogprobs) {
  turboquant::GenerateOptions options{.max_tokens = 12, .min_tokens = 12, .temperature = 1.0f};
  options.seed = 5;
  options.logprobs = 3;
  const auto many = model_->GenerateMany("hi", 3, options);
  ASSERT_TRUE(many) << many.error();
  ASSERT_EQ(many->size(), 3u);
  const auto first = model_->Generate("hi", options);
  ASSERT_TRUE(first) << first.error();
  EXPECT_EQ((*many)[0].ids, first->ids);
  EXPECT_NE((*many)[1].ids, first->ids);
  EXPECT_NE((*many)[2].ids, (*many)[1].ids);
  options.seed = (*many)[2].seed;
  const auto third = model_->Generate("hi", options);
  ASSERT_TRUE(third) << third.error();
  EXPECT_EQ(third->ids, (*many)[2].ids);
  ASSERT_EQ(third->logprobs.size(), third->ids.size());
  for (size_t i = 0; i < third->ids.size(); ++i) {
    const turboquant::TokenLogprobs& token = third->logprobs[i];
    ASSERT_EQ(token.top.size(), 3u);
    EXPECT_LE(token.logprob, token.top[0].logprob);
    EXPECT_GE(token.top[0].logprob, token.top[1].logprob);
    EXPECT_EQ(token.logprob, (*many)[2].logprobs[i].logprob);
  }
  options.logprobs = 21;
  EXPECT_FALSE(model_->Generate("hi", options));
}

// SA-05 (c): without a seed every request has its own.
TEST_F(Api, SA05_WithoutASeedAnswersDiffer) {
  const turboquant::GenerateOptions options{
      .max_tokens = 20, .min_tokens = 20, .temperature = 1.0f};
  const auto first = model_->Generate("hi", options);
  const auto second = model_->Generate("hi", options);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->ids, second->ids);
}

TEST_F(Api, BadWordsStopIdsAndIgnoredEnds) {
  turboquant::GenerateOptions options{.max_tokens = 20, .min_tokens = 20};
  const auto plain = model_->Generate("hi", options);
  ASSERT_TRUE(plain);
  // An id of the answer that is a whole character.
  const auto found = std::find_if(plain->ids.begin(), plain->ids.end(), [&](int32_t id) {
    const std::string text = *model_->Detokenize({id});
    return text.size() == 1 && text[0] > ' ';
  });
  ASSERT_NE(found, plain->ids.end());
  options.bad_words = {*model_->Detokenize({*found})};
  const auto without = model_->Generate("hi", options);
  ASSERT_TRUE(without) << without.error();
  EXPECT_EQ(std::count(without->ids.begin(), without->ids.end(), *found), 0);
  options = {.max_tokens = 20, .ignore_end = true};
  EXPECT_EQ(model_->Generate("hi", options)->ids.size(), 20u);
  options.stop_ids = {plain->ids[0]};
  const auto stopped = model_->Generate("hi", options);
  EXPECT_EQ(stopped->finish_reason, turboquant::FinishReason::kStop);
  options = {.max_tokens = 5};
  options.samplers = "top_k;wrong";
  EXPECT_FALSE(model_->Generate("hi", options));
}

TEST_F(Api, FailuresSayWhy) {
  const auto missing = turboquant::Model::Load(folder_ / "missing");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().find("missing"), std::string::npos);
  EXPECT_FALSE(model_->GenerateFromIds({}));
  EXPECT_FALSE(model_->GenerateFromIds({320}));
  EXPECT_FALSE(model_->Generate("hi", {.temperature = -1.0f}));
  EXPECT_FALSE(model_->Generate(std::string(600, 'a')));
}

}  // namespace
}  // namespace tq::test

// The public C++ API on a tiny checkpoint.
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

// What a step may bring beside ids, on every golden model: embeddings equal to the ids' own rows
// and positions that are the same on every axis change no bit.
#include <gtest/gtest.h>

#include "support/checkpoint.h"
#include "support/step_runner.h"

namespace tq::test {
namespace {

class StepInputs : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto loaded = LoadOn(std::string(TQ_TEST_DATA "/models/") + GetParam(), "",
                         {.num_threads = 1, .activations = ActivationMode::kInt8, .isa = ""});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    loaded_ = std::move(*loaded);
    for (int i = 0; i < 40; ++i) ids_.push_back((i * 37) % 313 + 3);
    StepRunner runner(loaded_, 1, 64);
    want_ = runner.Run(runner.Plan({{0, 0, ids_}}), &rows_);
  }

  // Some parts of a model look at the id itself.
  bool NeedsIds() const {
    bool needs = loaded_.model->spec().per_layer_input > 0;
    for (const BlockSpec& block : loaded_.model->spec().blocks) needs = needs || block.ngram;
    return needs;
  }

  Loaded loaded_;
  std::vector<int32_t> ids_;
  std::vector<float> want_;
  std::vector<float> rows_;  // the embeddings of ids_
};

TEST_P(StepInputs, EmbeddingsInPlaceOfIds) {
  const int64_t hidden = loaded_.model->spec().hidden_size;
  StepRunner runner(loaded_, 1, 64);
  StepPlan plan = runner.Plan({{0, 0, ids_}});
  // Two spans, and ids around and between them.
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{3, 9}, {13, 20}}) {
    plan.embeddings.push_back(
        {.first_token = first,
         .num_tokens = count,
         .rows = {rows_.begin() + first * hidden, rows_.begin() + (first + count) * hidden}});
    if (NeedsIds()) continue;
    std::fill_n(plan.ids.begin() + first, count, 0);
  }
  EXPECT_EQ(runner.Run(plan), want_);
}

TEST_P(StepInputs, OtherEmbeddingsAreSeen) {
  const int64_t hidden = loaded_.model->spec().hidden_size;
  StepRunner runner(loaded_, 1, 64);
  StepPlan plan = runner.Plan({{0, 0, ids_}});
  plan.embeddings.push_back(
      {.first_token = 7, .num_tokens = 1, .rows = {rows_.begin(), rows_.begin() + hidden}});
  const std::vector<float> logits = runner.Run(plan);
  const int64_t before = 7 * loaded_.model->spec().vocab_size;
  EXPECT_TRUE(std::equal(want_.begin(), want_.begin() + before, logits.begin()));
  EXPECT_NE(logits, want_);
}

TEST_P(StepInputs, ThreeEqualAxesAreOne) {
  StepRunner runner(loaded_, 1, 64);
  // In two steps, so that what a layer carries over has to know its axes.
  std::vector<float> found;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 17}, {17, 40}}) {
    StepPlan plan = runner.Plan({{0, begin, {ids_.begin() + begin, ids_.begin() + end}}});
    for (int64_t axis = 0; axis < kPositionAxes; ++axis) {
      plan.axis_positions.insert(plan.axis_positions.end(), plan.positions.begin(),
                                 plan.positions.end());
    }
    const std::vector<float> logits = runner.Run(plan);
    found.insert(found.end(), logits.begin(), logits.end());
  }
  EXPECT_EQ(found, want_);
}

std::string FolderName(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, StepInputs, testing::ValuesIn(FolderNames(TQ_TEST_DATA "/models")),
                         FolderName);

}  // namespace
}  // namespace tq::test

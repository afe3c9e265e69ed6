#include "quantize/calibrate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "quantize/calibration_for_test.h"
#include "quantize/hessian_file.h"

namespace tq {
namespace {

// The inputs of one matrix, as they are.
class Recorder : public InputObserver {
 public:
  explicit Recorder(std::string name) : name_(std::move(name)) {}
  void OnInput(std::span<const std::string_view> names, const float* x, int64_t num_tokens,
               int64_t cols) override {
    if (std::find(names.begin(), names.end(), name_) != names.end())
      values.assign(x, x + num_tokens * cols);
  }
  std::vector<float> values;

 private:
  std::string name_;
};

TEST_F(CalibrateTest, SumsAreThoseOfTheInputs) {
  const std::vector<int32_t> ids = Ids(kTokens, 1);
  const auto report = Run({ids});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->tokens, kTokens);
  EXPECT_EQ(report->inputs, 17);  // 4 layers of 4, and the head
  EXPECT_EQ(report->continued_inputs, 0);
  const auto file = HessianFile::Open(file_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->num_tokens(), kTokens);
  const struct {
    const char* name;
    int64_t cols;
  } matrices[] = {{"model.layers.0.self_attn.q_proj", 64},  {"model.layers.1.self_attn.v_proj", 64},
                  {"model.layers.2.self_attn.o_proj", 128}, {"model.layers.3.mlp.up_proj", 64},
                  {"model.layers.3.mlp.down_proj", 128},    {"lm_head", 64}};
  for (const auto& matrix : matrices) {
    SCOPED_TRACE(matrix.name);
    // Shared inputs are shown with all their matrices, so any of the names finds them.
    Recorder recorder(matrix.name);
    Logits(llama_, ids, &recorder);
    const auto sums = (*file)->Read(matrix.name, matrix.cols);
    ASSERT_TRUE(sums.ok()) << sums.status().message();
    ASSERT_EQ(recorder.values.size(), static_cast<size_t>(kTokens * matrix.cols));
    double largest = 0;
    double worst = 0;
    for (int64_t i = 0; i < matrix.cols; ++i) {
      for (int64_t j = 0; j < matrix.cols; ++j) {
        double sum = 0;
        for (int64_t t = 0; t < kTokens; ++t) {
          sum += double{recorder.values[static_cast<size_t>(t * matrix.cols + i)]} *
                 recorder.values[static_cast<size_t>(t * matrix.cols + j)];
        }
        largest = std::max(largest, std::fabs(sum));
        worst = std::max(worst, std::fabs(sum - (*sums)[static_cast<size_t>(i * matrix.cols + j)]));
      }
    }
    EXPECT_LT(worst, 1e-5 * largest);
  }
}

TEST_F(CalibrateTest, LittleMemoryGivesTheSameFile) {
  const std::vector<std::vector<int32_t>> texts = {Ids(3 * kTokens, 1), Ids(kTokens, 2)};
  ASSERT_TRUE(Run(texts).ok());
  const auto whole = ReadTextFile(file_);
  options_.memory_bytes = 3 * 128 * 128 * 4;
  options_.num_threads = 1;
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
  };
  const auto report = Run(texts);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->passes, 2);
  EXPECT_EQ(last, report->passes * report->tokens);
  EXPECT_TRUE(*ReadTextFile(file_) == *whole);
  options_.memory_bytes = 1000;
  EXPECT_EQ(Run(texts).status().code(), StatusCode::kOutOfMemory);
}

TEST_F(CalibrateTest, RefusesDamagedSums) {
  const std::vector<HessianWriter::Input> inputs = {{{"a", "b"}, 16}, {{"c"}, 32}};
  std::vector<float> sums(16 * 16, 1.0f);
  std::vector<float> wrong(32 * 32, 1.0f);
  wrong[5] = 2;
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7};
  auto writer = HessianWriter::Create(file_, inputs, {ids}, "0123", "f32");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(inputs[0], sums, 7).ok());
  ASSERT_TRUE((*writer)->Append(inputs[1], wrong, 0).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto file = HessianFile::Open(file_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->fingerprint(), "0123");
  EXPECT_EQ((*file)->num_tokens(), 7);
  EXPECT_EQ((*file)->Samples().front(), ids);
  EXPECT_EQ(*(*file)->Read("b", 16), sums);
  EXPECT_EQ(*(*file)->Rows("b"), 7);
  EXPECT_EQ(*(*file)->Rows("c"), 0);
  EXPECT_EQ((*file)->InputName("b"), "a");
  EXPECT_EQ((*file)->Read("b", 32).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ((*file)->Read("c", 32).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ((*file)->Read("d", 16).status().code(), StatusCode::kNotFound);
  EXPECT_EQ((*file)->Rows("d").status().code(), StatusCode::kNotFound);
}

TEST_F(CalibrateTest, AnInterruptedRunGoesOn) {
  const std::vector<std::vector<int32_t>> texts = {Ids(2 * kTokens, 1)};
  ASSERT_TRUE(Run(texts).ok());
  const auto whole = ReadTextFile(file_);
  std::filesystem::remove(file_);
  options_.memory_bytes = 3 * 128 * 128 * 4;  // several passes
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.progress = [&](int64_t done, int64_t) { cancel = done > 5 * kTokens; };
  const Status stopped = Run(texts).status();
  EXPECT_EQ(stopped.code(), StatusCode::kCancelled);
  EXPECT_NE(stopped.message().find("the same command continues"), std::string::npos)
      << stopped.message();
  EXPECT_EQ(NumFiles(), 1u);
  // Half of an input, as a kill leaves it.
  std::filesystem::resize_file(file_ + ".partial",
                               std::filesystem::file_size(file_ + ".partial") - 1000);
  cancel = false;
  options_.progress = {};
  const auto report = Run(texts);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->continued_inputs, 2);
  EXPECT_LT(report->continued_inputs, report->inputs);
  EXPECT_TRUE(*ReadTextFile(file_) == *whole);
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(CalibrateTest, WhatAnotherRunLeftIsNotUsed) {
  options_.memory_bytes = 3 * 128 * 128 * 4;
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.progress = [&](int64_t done, int64_t) { cancel = done > 2 * kTokens; };
  EXPECT_EQ(Run({Ids(kTokens, 1)}).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(NumFiles(), 1u);
  cancel = false;
  options_.progress = {};
  const auto report = Run({Ids(kTokens, 2)});  // other text
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->continued_inputs, 0);
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(CalibrateTest, BadInputsAreOneLineAndLeaveNothing) {
  EXPECT_NE(Run({Ids(kTokens - 1, 1)}).status().message().find("at least 96 tokens"),
            std::string::npos);
  std::vector<int32_t> ids = Ids(kTokens, 1);
  ids[3] = 9999;
  EXPECT_EQ(Run({ids}).status().code(), StatusCode::kInvalidArgument);
  options_.seq_len = 100000;
  EXPECT_NE(Run({Ids(kTokens, 1)}).status().message().find("the model's context"),
            std::string::npos);
  options_.seq_len = kTokens;
  std::atomic<bool> cancel{true};
  options_.cancel = &cancel;
  EXPECT_EQ(Run({Ids(kTokens, 1)}).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(NumFiles(), 0u);
}

}  // namespace
}  // namespace tq

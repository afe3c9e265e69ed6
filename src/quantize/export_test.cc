#include "quantize/export.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "base/file.h"
#include "codec/codec.h"
#include "quantize/export_stream.h"
#include "tensor/half.h"
#include "weights/fake_source_for_test.h"

namespace tq {
namespace {

class ExportTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tq_export_test_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    auto source = OpenSource(TQ_TEST_DATA "/models/llama");
    ASSERT_TRUE(source.ok()) << source.status().message();
    llama_ = std::move(*source);
    options_.num_threads = 2;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Found() const { return *ListDirectory(folder_); }

  std::string folder_;
  std::unique_ptr<WeightSource> llama_;
  ExportOptions options_;
};

TEST_F(ExportTest, ReportsProgressToTheEnd) {
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
  };
  const auto report = ExportHuggingFace(*llama_, folder_ + "/out", options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->type, "BF16");
  EXPECT_EQ(last, report->total_weights);
  EXPECT_EQ(report->output_bytes, 2 * report->total_weights);
  EXPECT_EQ(Found(), std::vector<std::string>{"out"});
}

TEST_F(ExportTest, CancelLeavesNothing) {
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.progress = [&](int64_t done, int64_t total) { cancel = done > total / 2; };
  const auto report = ExportHuggingFace(*llama_, folder_ + "/out", options_);
  EXPECT_EQ(report.status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(Found().empty());
}

TEST_F(ExportTest, GgufCancelLeavesNothing) {
  auto source = OpenSource(TQ_TEST_DATA "/gguf/models/qwen3/BF16.gguf");
  ASSERT_TRUE(source.ok()) << source.status().message();
  std::atomic<bool> cancel{true};
  options_.cancel = &cancel;
  const auto report = ExportGguf(**source, folder_ + "/out.gguf", options_);
  EXPECT_EQ(report.status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(Found().empty());
}

TEST_F(ExportTest, RefusesAnExistingOutput) {
  std::filesystem::create_directories(folder_ + "/out");
  ASSERT_TRUE(WriteFile(folder_ + "/out.gguf", "mine").ok());
  auto gguf = OpenSource(TQ_TEST_DATA "/gguf/models/qwen3/BF16.gguf");
  ASSERT_TRUE(gguf.ok());
  EXPECT_NE(ExportHuggingFace(*llama_, folder_ + "/out", options_)
                .status()
                .message()
                .find("exists already"),
            std::string::npos);
  EXPECT_NE(
      ExportGguf(**gguf, folder_ + "/out.gguf", options_).status().message().find("exists already"),
      std::string::npos);
  EXPECT_EQ(*ReadTextFile(folder_ + "/out.gguf"), "mine");
  EXPECT_EQ(ExportGguf(**gguf, folder_ + "/out.bin", options_).status().code(),
            StatusCode::kInvalidArgument);
}

// One item through the stream.
class ExportStreamTest : public testing::Test {
 protected:
  Status Write(const std::vector<float>& values, const Shape& shape, ExportType type,
               ExportChange change = ExportChange::kNone, int64_t head_dim = 0) {
    FakeSource source;
    source.Add("x.weight", DType::kF32, shape, values);
    ExportItem item;
    item.need = {"x.weight", shape, TensorRole::kLinear};
    item.name = "out";
    item.shape = shape;
    item.type = type;
    item.change = change;
    item.head_dim = head_dim;
    ExportOptions options;
    options.num_threads = 2;
    ExportStream stream(source, false, options, item.weights());
    bytes_.clear();
    const Status status = stream.Write(item, [this](std::span<const std::byte> bytes) {
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
      return Status::Ok();
    });
    if (status.ok()) {
      EXPECT_EQ(static_cast<int64_t>(bytes_.size()), item.output_bytes());
    }
    return status;
  }

  std::vector<float> Floats() const {
    std::vector<float> out(bytes_.size() / sizeof(float));
    std::memcpy(out.data(), bytes_.data(), bytes_.size());
    return out;
  }

  std::vector<std::byte> bytes_;
};

TEST_F(ExportStreamTest, Q8BlocksAreWithinHalfAStep) {
  std::vector<float> values(3 * 64);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.013f;
  }
  std::fill(values.begin() + 64, values.begin() + 96, 0.0f);  // a block of zeros
  ASSERT_TRUE(Write(values, {3, 64}, ExportType::kQ8_0).ok());
  SourceTensor tensor;
  tensor.shape = {3, 64};
  tensor.codec = CodecId::kQ8_0;
  tensor.is_float_like = true;
  tensor.bytes = bytes_;
  const std::vector<float> decoded = *ReadFloats(tensor);
  for (size_t block = 0; block < values.size(); block += 32) {
    float largest = 0.0f;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[block + i]));
    for (size_t i = block; i < block + 32; ++i) {
      EXPECT_NEAR(decoded[i], values[i], largest / 127 * 0.5f + largest * 1e-3f);
    }
  }
}

TEST_F(ExportStreamTest, HeadRowsInterleaveTheHalves) {
  // Two heads of four rows.
  ASSERT_TRUE(
      Write({0, 1, 2, 3, 4, 5, 6, 7}, {8, 1}, ExportType::kF32, ExportChange::kHeadRows, 4).ok());
  EXPECT_EQ(Floats(), (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  // A bias likewise.
  ASSERT_TRUE(
      Write({0, 1, 2, 3, 4, 5, 6, 7}, {8}, ExportType::kF32, ExportChange::kHeadRows, 4).ok());
  EXPECT_EQ(Floats(), (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
}

TEST_F(ExportStreamTest, NormsGainOrLoseOne) {
  ASSERT_TRUE(Write({0.5f, -1}, {2}, ExportType::kF32, ExportChange::kPlusOne).ok());
  EXPECT_EQ(Floats(), (std::vector<float>{1.5f, 0}));
  ASSERT_TRUE(Write({1.5f, 0}, {2}, ExportType::kF32, ExportChange::kMinusOne).ok());
  EXPECT_EQ(Floats(), (std::vector<float>{0.5f, -1}));
}

TEST_F(ExportStreamTest, RefusesWhatIsNotFinite) {
  std::vector<float> values(64, 1.0f);
  values[40] = std::numeric_limits<float>::quiet_NaN();
  for (const ExportType type :
       {ExportType::kF32, ExportType::kF16, ExportType::kBf16, ExportType::kQ8_0}) {
    EXPECT_EQ(Write(values, {2, 32}, type).code(), StatusCode::kCorrupt);
  }
  values[40] = 70000.0f;
  EXPECT_NE(Write(values, {2, 32}, ExportType::kF16).message().find("tensor x.weight, row 1"),
            std::string::npos);
  EXPECT_TRUE(Write(values, {2, 32}, ExportType::kBf16).ok());
  EXPECT_TRUE(Write(values, {2, 32}, ExportType::kQ8_0).ok());
}

}  // namespace
}  // namespace tq

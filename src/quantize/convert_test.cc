#include "quantize/convert.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace tq {
namespace {

class ConvertTest : public testing::Test {
 protected:
  void SetUp() override {
    out_ = testing::TempDir() + "tq_convert_test_" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(out_);
    auto source = OpenSource(TQ_TEST_DATA "/models/llama");
    ASSERT_TRUE(source.ok()) << source.status().message();
    source_ = std::move(*source);
    options_.num_threads = 2;
  }
  void TearDown() override { std::filesystem::remove_all(out_); }

  // Everything beside the output that carries its name: staging folders would show here.
  std::vector<std::string> Leftovers() const {
    std::vector<std::string> found;
    const std::filesystem::path out(out_);
    const auto names = ListDirectory(out.parent_path().string());
    for (const std::string& name : *names) {
      if (name.find(out.filename().string()) != std::string::npos) found.push_back(name);
    }
    return found;
  }

  std::string out_;
  std::unique_ptr<WeightSource> source_;
  ConvertOptions options_;
};

TEST_F(ConvertTest, ReportsSizes) {
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
  };
  const auto report = Convert(*source_, out_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->quantized_matrices, 29);  // 4 layers of 7, and the head
  EXPECT_EQ(last, report->total_weights);
  EXPECT_EQ(Leftovers().size(), 1u);
}

TEST_F(ConvertTest, ShardsAreSplitAndIndexed) {
  options_.max_shard_bytes = 20'000;
  const auto report = Convert(*source_, out_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  auto written = OpenSource(out_);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_NE((*written)->Find("model.layers.3.mlp.down_proj.codebook"), nullptr);
  int shards = 0;
  const auto names = ListDirectory(out_);
  for (const std::string& name : *names) shards += name.ends_with(".safetensors") ? 1 : 0;
  EXPECT_GE(shards, 4);
}

TEST_F(ConvertTest, RefusesAnExistingFolder) {
  std::filesystem::create_directories(out_);
  const auto report = Convert(*source_, out_, options_);
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(report.status().message().find("exists already"), std::string::npos);
}

TEST_F(ConvertTest, CancelLeavesNothing) {
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.progress = [&](int64_t done, int64_t total) { cancel = done > total / 2; };
  EXPECT_EQ(Convert(*source_, out_, options_).status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(Leftovers().empty());
}

TEST_F(ConvertTest, RefusesWhatIsQuantizedAlready) {
  ASSERT_TRUE(Convert(*source_, out_, options_).ok());
  auto again = OpenSource(out_);
  ASSERT_TRUE(again.ok());
  const auto report = Convert(**again, out_ + "_2", options_);
  EXPECT_NE(report.status().message().find("is a TurboQuant checkpoint already"),
            std::string::npos);
  EXPECT_EQ(Leftovers().size(), 1u);
}

TEST_F(ConvertTest, RefusesBadSettings) {
  options_.settings.bits = 5;
  EXPECT_EQ(Convert(*source_, out_, options_).status().message(),
            "bits: expected one of 2, 3, 4, found 5");
  options_.settings.bits = 3;
  options_.settings.group_size = 48;
  EXPECT_NE(
      Convert(*source_, out_, options_).status().message().find("group size: expected one of"),
      std::string::npos);
}

TEST_F(ConvertTest, GroupsThatFitNoRowAreRefused) {
  options_.settings.group_size = 128;  // rows of 64 and 128: only down_proj fits
  const auto report = Convert(*source_, out_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->quantized_matrices, 8);  // o_proj and down_proj read 128 columns
  EXPECT_EQ(report->warnings.size(), 21u);
}

}  // namespace
}  // namespace tq

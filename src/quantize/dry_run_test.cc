#include "quantize/dry_run.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace tq {
namespace {

class DryRunTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tq_dry_run_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    options_.num_threads = 1;
    options_.settings.group_size = 32;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<WeightSource> Open(const std::string& name) const {
    auto source = OpenSource(std::string(TQ_TEST_DATA "/models/") + name);
    EXPECT_TRUE(source.ok()) << source.status().message();
    return source.ok() ? std::move(*source) : nullptr;
  }

  std::string folder_;
  ConvertOptions options_;
};

TEST_F(DryRunTest, SaysWhatTheConversionThenDoes) {
  for (const char* name : {"llama", "qwen3_moe", "qwen3_5", "nemotron_h"}) {
    const auto source = Open(name);
    options_.settings.attn_bits = 4;
    options_.settings.mlp_bits = 2;
    const std::string out = folder_ + "/" + name;
    const auto dry = DryRun(*source, out, options_);
    ASSERT_TRUE(dry.ok()) << dry.status().message();
    EXPECT_FALSE(FileExists(out));
    const auto real = Convert(*source, out, options_);
    ASSERT_TRUE(real.ok()) << real.status().message();
    EXPECT_EQ(dry->totals.output_bytes, real->output_bytes);
    EXPECT_EQ(dry->totals.quantized_bytes, real->quantized_bytes);
    EXPECT_EQ(dry->totals.total_weights, real->total_weights);
    int64_t bytes = 0;
    int64_t weights = 0;
    for (const auto& width : dry->widths) bytes += width.bytes;
    for (const auto& width : dry->widths) weights += width.weights;
    EXPECT_EQ(bytes, real->quantized_bytes) << name;
    EXPECT_EQ(weights, real->quantized_weights) << name;
    for (const auto& kept : dry->kept) bytes += kept.bytes;
    for (const auto& kept : dry->kept) weights += kept.weights;
    EXPECT_EQ(bytes, real->output_bytes) << name;
    EXPECT_EQ(weights, real->total_weights) << name;
  }
}

TEST_F(DryRunTest, CountsMatricesByWidthAndGroup) {
  options_.settings.attn_bits = 4;
  options_.settings.mlp_bits = 2;
  options_.settings.mlp_group_size = 16;
  options_.max_shard_bytes = 30'000;
  const auto dry = DryRun(*Open("llama"), folder_ + "/out", options_);
  ASSERT_TRUE(dry.ok()) << dry.status().message();
  ASSERT_EQ(dry->widths.size(), 3u);
  EXPECT_EQ(dry->widths[0].codebook_entries, 4);
  EXPECT_EQ(dry->widths[0].group, 16);
  EXPECT_EQ(dry->widths[0].matrices, 12);  // 4 layers: gate, up, down
  EXPECT_EQ(dry->widths[1].codebook_entries, 8);
  EXPECT_EQ(dry->widths[1].matrices, 1);  // the head
  EXPECT_EQ(dry->widths[2].codebook_entries, 16);
  EXPECT_EQ(dry->widths[2].matrices, 16);
  EXPECT_GT(dry->shards, 3);
  EXPECT_GT(dry->free_bytes, 0);
  ASSERT_EQ(dry->kept.size(), 2u);
  EXPECT_EQ(dry->kept[0].reason.find("token embeddings"), 0u);
  EXPECT_EQ(dry->kept[1].reason, "norms");
  EXPECT_EQ(dry->kept[1].tensors, 9);
  EXPECT_GT(*dry->weights_per_second, 1e5);
  EXPECT_GT(*dry->seconds(), 0);
}

TEST_F(DryRunTest, ExpertsCountOneByOne) {
  const auto dry = DryRun(*Open("qwen3_moe"), folder_ + "/out", options_);
  ASSERT_TRUE(dry.ok()) << dry.status().message();
  ASSERT_EQ(dry->widths.size(), 1u);
  EXPECT_GT(dry->widths[0].matrices, dry->totals.quantized_matrices);
}

TEST_F(DryRunTest, SaysThatTheOutputExists) {
  const auto dry = DryRun(*Open("llama"), folder_, options_);
  ASSERT_TRUE(dry.ok()) << dry.status().message();
  EXPECT_TRUE(dry->output_exists);
}

}  // namespace
}  // namespace tq

// Synthetic models: every size in the list parses, its memory is known before it is made, and one
// that does not fit is refused with the number of layers that would.
#include <gtest/gtest.h>

#include "base/file.h"
#include "eval/step_timer.h"
#include "eval/synthetic_size.h"
#include "eval/synthetic_source.h"
#include "model/model.h"

namespace tq {
namespace {

constexpr int64_t kPages = 2;

// A small model of the same families: hybrid mixers, experts, an embedding beside.
SyntheticModel Small(const SyntheticOptions& options = {}) {
  const std::string path = testing::TempDir() + "tq_synthetic_config.json";
  TQ_CHECK(WriteFile(path, R"({"model_type": "qwen3_5_moe_text", "vocab_size": 2048,
    "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 64, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "num_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128,
    "max_position_embeddings": 512})")
               .ok());
  auto model = FindSynthetic(path, options);
  TQ_CHECK(model.ok());
  return std::move(*model);
}

TEST(Synthetic, EverySizeOfTheListParses) {
  for (const std::string& name : SyntheticNames()) {
    const auto all = FindSynthetic(name, {});
    ASSERT_TRUE(all.ok()) << name << ": " << all.status().message();
    const auto some = FindSynthetic(name, {.layers = 5});
    ASSERT_TRUE(some.ok()) << name << ": " << some.status().message();
    EXPECT_EQ(some->spec.blocks.size(), 5u) << name;
    EXPECT_GE(all->spec.blocks.size(), 8u) << name;
  }
  EXPECT_NE(FindSynthetic("qwen", {}).status().message().find("expected one of deepseek-v2-lite"),
            std::string::npos);
}

TEST(Synthetic, NemotronNanoHasItsPattern) {
  const auto model = FindSynthetic("nemotron-3-nano-4b", {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  int attention = 0;
  int mamba = 0;
  int ffn = 0;
  for (const BlockSpec& block : model->spec.blocks) {
    attention += std::holds_alternative<AttentionSpec>(block.mixer) ? 1 : 0;
    mamba += std::holds_alternative<Mamba2Spec>(block.mixer) ? 1 : 0;
    ffn += std::holds_alternative<DenseFfnSpec>(block.ffn) ? 1 : 0;
  }
  EXPECT_EQ(attention, 4);
  EXPECT_EQ(mamba, 21);
  EXPECT_EQ(ffn, 17);
}

TEST(Synthetic, TheEstimateIsWhatLoadingTakes) {
  for (const int bits : {2, 3, 4, 16}) {
    const SyntheticModel small = Small({.bits = bits});
    const SyntheticSize size = MeasureSynthetic(small, KvFormat::kF16, kPages, 1);
    auto backend = MakeBackend("", {.num_threads = 2, .isa = ""});
    ASSERT_TRUE(backend.ok());
    const auto model = Model::Load(*MakeSynthetic(small), **backend);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto prepared = static_cast<double>((*model)->prepared_bytes());
    // Vectors (norms, decay, signs) are in the estimate alone; in a small model they count.
    EXPECT_GE(static_cast<double>(size.weight_bytes()), prepared) << bits;
    EXPECT_LE(static_cast<double>(size.weight_bytes()), 1.1 * prepared) << bits;

    auto timer = StepTimer::Create(**model, **backend, KvFormat::kF16, 100, 1);
    ASSERT_TRUE(timer.ok());
    EXPECT_GT((*timer)->Step(1, 70, 0), 0);
  }
}

TEST(Synthetic, WhatDoesNotFitSaysHowManyLayersDo) {
  const SyntheticModel model = Small();
  SyntheticSize size = MeasureSynthetic(model, KvFormat::kF16, kPages, 1);
  EXPECT_TRUE(CheckSyntheticFits(model, size, int64_t{1} << 40).ok());
  size.shared_bytes = 1'000'000'000;
  size.layer_bytes = {2'000'000'000, 2'000'000'000, 2'000'000'000, 2'000'000'000};
  size.cache_bytes.assign(4, 0);
  const Status refused = CheckSyntheticFits(model, size, 6'000'000'000);
  EXPECT_EQ(refused.code(), StatusCode::kOutOfMemory);
  EXPECT_NE(refused.message().find("expected at most 6.0 GB (free memory), found 9.5 GB"),
            std::string::npos)
      << refused.message();
  EXPECT_NE(refused.message().find("2 of 4 layers fit: --layers 2"), std::string::npos);
  EXPECT_EQ(refused.message().find('\n'), std::string::npos);
  EXPECT_NE(CheckSyntheticFits(model, size, 2'000'000'000).message().find("not even one layer"),
            std::string::npos);
}

}  // namespace
}  // namespace tq

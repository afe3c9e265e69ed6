// Checkpoints written by the reference converter: they load and give its logits on every backend.
#include <gtest/gtest.h>

#include "support/checkpoint.h"

namespace tq::test {
namespace {

constexpr double kTolerance = 2e-4;

// Checkpoints that every backend reads, in both arithmetics.
constexpr const char* kFixtures[] = {
    "dense_b2",    "dense_b3",      "dense_b4",           "dense_norot",   "dense_mixed",
    "gemma3_tied", "dense_f16_b4",  "dense_m12_m20_bias", "moe_tq3a_tq2e", "hybrid_qwen3_5",
    "glm4_moe",    "gpt_oss_mxfp4", "dense_m28_m12",      "dense_blocks"};

std::string FixtureName(const testing::TestParamInfo<const char*>& info) { return info.param; }

class TurboQuantFixture : public testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return std::string(TQ_TEST_DATA "/turboquant/") + GetParam(); }
};

TEST_P(TurboQuantFixture, LogitsAndGreedyTextMatchTheReference) {
  const TensorFile expected(folder() + "/expected.safetensors");
  const std::vector<float> want = expected.Floats("logits_last32");
  for (const BackendChoice& choice : AvailableBackends()) {
    auto loaded =
        LoadOn(folder(), choice.backend,
               {.num_threads = 2, .activations = ActivationMode::kF32, .isa = choice.isa});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const std::vector<float> logits = Logits(*loaded, expected.Ids("tokens"));
    const std::vector<float> last(logits.end() - static_cast<int64_t>(want.size()), logits.end());
    EXPECT_LE(MaxDifference(last, want), kTolerance * StandardDeviation(want)) << choice.isa;
    const std::vector<int32_t> greedy = expected.Ids("greedy");
    EXPECT_EQ(Greedy(*loaded, expected.Ids("greedy_prompt"), static_cast<int>(greedy.size()), {2}),
              greedy);
  }
}

TEST_P(TurboQuantFixture, FastModeIsCloseAndTheSameEverywhere) {
  const TensorFile expected(folder() + "/expected.safetensors");
  const std::vector<float> want = expected.Floats("logits_last32");
  const std::vector<int32_t> tokens = expected.Ids("tokens");
  std::vector<float> first;
  bool has_experts = false;
  for (const BackendChoice& choice : AvailableBackends()) {
    for (const int threads : {1, 3}) {
      auto loaded =
          LoadOn(folder(), choice.backend,
                 {.num_threads = threads, .activations = ActivationMode::kInt8, .isa = choice.isa});
      ASSERT_TRUE(loaded.ok()) << loaded.status().message();
      for (const BlockSpec& block : loaded->model->spec().blocks) {
        has_experts = has_experts || std::holds_alternative<MoeSpec>(block.ffn);
      }
      const std::vector<float> logits = Logits(*loaded, tokens);
      if (first.empty()) first = logits;
      EXPECT_EQ(logits, first) << choice.isa << ", " << threads << " threads";
      for (const int64_t chunk : {1, 7})
        EXPECT_EQ(Logits(*loaded, tokens, chunk), first) << "chunk " << chunk;
    }
  }
  if (has_experts) return;  // a router may choose another expert
  // int8 activations and integer codebooks cost well below the quantization itself, which moves
  // these logits by about their own standard deviation at 3 bits.
  const std::vector<float> last(first.end() - static_cast<int64_t>(want.size()), first.end());
  EXPECT_LE(MaxDifference(last, want), 0.25 * StandardDeviation(want));
}

INSTANTIATE_TEST_SUITE_P(All, TurboQuantFixture, testing::ValuesIn(kFixtures), FixtureName);

}  // namespace
}  // namespace tq::test

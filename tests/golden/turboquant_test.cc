// Checkpoints written by the reference converter: they load and give its logits; and converting the
// same sources here gives the same bytes.
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "quantize/convert.h"
#include "support/checkpoint.h"

namespace tq::test {
namespace {

constexpr double kTolerance = 2e-4;

struct Fixture {
  const char* name;
  const char* source;  // in models/, or null when the source is not kept
  QuantizeSettings settings;
};

QuantizeSettings Settings(int bits, int group) { return {.bits = bits, .group_size = group}; }

QuantizeSettings Tiers(int bits, int group, std::optional<int> attn, std::optional<int> mlp) {
  QuantizeSettings settings = Settings(bits, group);
  settings.attn_bits = attn;
  settings.mlp_bits = mlp;
  return settings;
}

std::vector<Fixture> Fixtures() {
  QuantizeSettings norot = Settings(3, 32);
  norot.rotation = "none";
  norot.rotate = false;
  QuantizeSettings mixed = Settings(3, 64);
  mixed.attn_bits = 4;
  mixed.mlp_bits = 2;
  mixed.mlp_group_size = 16;
  mixed.rotation = "blockwise_hadamard";
  mixed.rotation_seed = 7;
  return {{"dense_b2", "llama", Settings(2, 32)},
          {"dense_b3", "llama", Settings(3, 64)},
          {"dense_b4", "qwen3", Settings(4, 64)},
          {"dense_norot", "llama", norot},
          {"dense_mixed", "llama", mixed},
          {"gemma3_tied", "gemma3_text", Settings(4, 64)},
          {"dense_f16_b4", "qwen2", Settings(4, 32)},
          {"dense_m12_m20_bias", "llama_tied_bias", Settings(3, 32)},
          {"moe_tq3a_tq2e", "qwen3_moe", Tiers(3, 64, 3, 2)},
          {"hybrid_qwen3_5", "qwen3_5_text", Settings(3, 64)},
          {"glm4_moe", "glm4_moe", Tiers(4, 64, {}, 3)},
          {"gpt_oss_mxfp4", "gpt_oss_mxfp4", Tiers(4, 32, {}, 3)},
          {"dense_m28_m12", nullptr, {}},
          {"dense_blocks", nullptr, {}}};
}

std::string FixtureName(const testing::TestParamInfo<Fixture>& info) { return info.param.name; }

class TurboQuantFixture : public testing::TestWithParam<Fixture> {
 protected:
  std::string folder() const { return std::string(TQ_TEST_DATA "/turboquant/") + GetParam().name; }
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

TEST_P(TurboQuantFixture, ConvertingTheSourceGivesTheSameBytes) {
  if (GetParam().source == nullptr) GTEST_SKIP() << "its source is not kept";
  const std::string out = testing::TempDir() + "tq_convert_" + GetParam().name;
  std::filesystem::remove_all(out);
  auto source = OpenSource(std::string(TQ_TEST_DATA "/models/") + GetParam().source);
  ASSERT_TRUE(source.ok());
  ConvertOptions options;
  options.settings = GetParam().settings;
  options.rounding = Rounding::kRms;
  options.num_threads = 2;
  const auto report = Convert(**source, out, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const TensorFile ours(out + "/model.safetensors");
  const TensorFile theirs(folder() + "/model.safetensors");
  ASSERT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const SourceTensor& want : theirs.tensors()) {
    const SourceTensor* got = ours.Find(want.name);
    ASSERT_NE(got, nullptr) << want.name;
    EXPECT_EQ(got->dtype, want.dtype) << want.name;
    EXPECT_EQ(got->shape, want.shape) << want.name;
    ASSERT_EQ(got->bytes.size(), want.bytes.size()) << want.name;
    EXPECT_EQ(std::memcmp(got->bytes.data(), want.bytes.data(), want.bytes.size()), 0) << want.name;
  }
  std::filesystem::remove_all(out);
}

INSTANTIATE_TEST_SUITE_P(All, TurboQuantFixture, testing::ValuesIn(Fixtures()), FixtureName);

}  // namespace
}  // namespace tq::test

// Checkpoints that mlx-lm wrote, quantized and not, under its own tensor names.
#include <gtest/gtest.h>

#include "support/checkpoint.h"

namespace tq::test {
namespace {

// What the package's own f32 run differs from its float model by, plus our own arithmetic.
constexpr double kTolerance = 2e-4;

class MlxFixture : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return TQ_TEST_DATA "/mlx/" + GetParam(); }
  Result<Loaded> Load() const {
    return LoadOn(folder(), "", {.num_threads = 2, .activations = ActivationMode::kF32, .isa = ""});
  }
};

TEST_P(MlxFixture, LogitsMatchThePackage) {
  const TensorFile expected(folder() + "/expected.safetensors");
  const Result<Loaded> loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const std::vector<float> all = Logits(*loaded, expected.Ids("tokens"));
  const std::vector<float> want = expected.Floats("logits_last16");
  ASSERT_GE(all.size(), want.size());
  const std::vector<float> last(all.end() - static_cast<int64_t>(want.size()), all.end());
  EXPECT_LE(MaxDifference(last, want), kTolerance * StandardDeviation(want));
}

TEST_P(MlxFixture, GreedyTextIsThePackages) {
  const TensorFile expected(folder() + "/expected.safetensors");
  const Result<Loaded> loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const std::vector<int32_t> want = expected.Ids("greedy");
  EXPECT_EQ(Greedy(*loaded, expected.Ids("greedy_prompt"), static_cast<int>(want.size()), {2}),
            want);
}

std::string FolderName(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, MlxFixture, testing::ValuesIn(FolderNames(TQ_TEST_DATA "/mlx")),
                         FolderName);

}  // namespace
}  // namespace tq::test

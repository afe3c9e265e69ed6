// Every checkpoint that the reference converter wrote, whatever the architecture and the generation
// of the format: it loads, and gives the reference's logits and greedy text.
#include <gtest/gtest.h>

#include "support/checkpoint.h"

namespace tq::test {
namespace {

// kimi_k3: f32 arithmetic in another order moves its logits as much (see model_test.cc).
double Tolerance(const std::string& name) { return name == "kimi_k3" ? 5e-4 : 2e-4; }

class TurboQuantReading : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return TQ_TEST_DATA "/turboquant/" + GetParam(); }
};

TEST_P(TurboQuantReading, LogitsAndGreedyTextMatchTheReference) {
  const TensorFile expected(folder() + "/expected.safetensors");
  if (expected.Find("canvas") != nullptr) GTEST_SKIP() << "a denoising pass: see diffusion_test";
  const bool text = expected.Find("text_tokens") != nullptr;  // the others have an image
  const std::vector<float> want = expected.Floats(text ? "text_logits_last24" : "logits_last32");
  const auto loaded =
      LoadOn(folder(), "", {.num_threads = 2, .activations = ActivationMode::kF32, .isa = ""});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const std::vector<float> logits = Logits(*loaded, expected.Ids(text ? "text_tokens" : "tokens"));
  ASSERT_GE(logits.size(), want.size());
  const std::vector<float> last(logits.end() - static_cast<int64_t>(want.size()), logits.end());
  EXPECT_LE(MaxDifference(last, want), Tolerance(GetParam()) * StandardDeviation(want));
  if (expected.Find("greedy") == nullptr) return;
  const std::vector<int32_t> greedy = expected.Ids("greedy");
  EXPECT_EQ(Greedy(*loaded, expected.Ids("greedy_prompt"), static_cast<int>(greedy.size()), {2}),
            greedy);
}

std::string FolderName(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, TurboQuantReading,
                         testing::ValuesIn(FolderNames(TQ_TEST_DATA "/turboquant")), FolderName);

}  // namespace
}  // namespace tq::test

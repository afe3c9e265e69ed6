// Every architecture against the reference implementation: logits, hidden states, greedy text; and
// the one-answer promise on the same models: chunk size, batch, threads, instruction set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/checkpoint.h"

namespace tq::test {
namespace {

// Reference and f32 arithmetic agree to this share of the logits' standard deviation.
constexpr double kTolerance = 2e-4;

struct Case {
  std::string model;
  BackendChoice choice;
};

std::vector<Case> AllCases() {
  std::vector<Case> out;
  for (const char* model :
       {"llama", "llama_tied_bias", "mistral_sliding", "qwen2", "qwen3", "gemma3_text"}) {
    for (const BackendChoice& choice : AvailableBackends()) out.push_back({model, choice});
  }
  return out;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  return info.param.model + "_" + info.param.choice.backend + "_" + info.param.choice.isa;
}

class GoldenModel : public testing::TestWithParam<Case> {
 protected:
  std::string folder() const { return TQ_TEST_DATA "/models/" + GetParam().model; }
  Loaded Load(ActivationMode mode, int threads = 2) const {
    auto loaded =
        LoadOn(folder(), GetParam().choice.backend,
               {.num_threads = threads, .activations = mode, .isa = GetParam().choice.isa});
    TQ_CHECK(loaded.ok());
    return std::move(*loaded);
  }
};

TEST_P(GoldenModel, LogitsAndHiddenStatesMatchTheReference) {
  const TensorFile expected(folder() + "/expected.safetensors");
  const Loaded loaded = Load(ActivationMode::kF32);
  std::vector<std::vector<float>> hidden;
  const std::vector<float> logits = Logits(loaded, expected.Ids("tokens"), 0, &hidden);
  const std::vector<float> want = expected.Floats("logits");
  EXPECT_LE(MaxDifference(logits, want), kTolerance * StandardDeviation(want));

  // hidden is [layers + 1, T, E]; the reference's last entry is after the final norm.
  const std::vector<float> want_hidden = expected.Floats("hidden");
  const size_t plane = hidden[0].size();
  ASSERT_EQ(want_hidden.size(), hidden.size() * plane);
  for (size_t i = 0; i + 1 < hidden.size(); ++i) {
    const std::vector<float> layer(want_hidden.begin() + static_cast<int64_t>(i * plane),
                                   want_hidden.begin() + static_cast<int64_t>((i + 1) * plane));
    EXPECT_LE(MaxDifference(hidden[i], layer), kTolerance * StandardDeviation(layer))
        << "hidden " << i;
  }
}

TEST_P(GoldenModel, GreedyTextIsTheReferences) {
  const TensorFile expected(folder() + "/expected.safetensors");
  const Loaded loaded = Load(ActivationMode::kF32);
  const std::vector<int32_t> want = expected.Ids("greedy");
  EXPECT_EQ(Greedy(loaded, expected.Ids("greedy_prompt"), static_cast<int>(want.size()), {2}),
            want);
}

TEST_P(GoldenModel, EveryChunkSizeGivesTheSameBits) {
  const TensorFile expected(folder() + "/expected.safetensors");
  for (const ActivationMode mode : {ActivationMode::kF32, ActivationMode::kInt8}) {
    const Loaded loaded = Load(mode);
    const std::vector<int32_t> tokens = expected.Ids("tokens");
    const std::vector<float> whole = Logits(loaded, tokens);
    for (const int64_t chunk : {1, 3, 16, 64}) {
      EXPECT_EQ(Logits(loaded, tokens, chunk), whole) << "chunk " << chunk;
    }
  }
}

TEST_P(GoldenModel, EveryBackendInstructionSetAndThreadCountGivesTheSameBits) {
  const TensorFile expected(folder() + "/expected.safetensors");
  const std::vector<int32_t> tokens = expected.Ids("tokens");
  for (const ActivationMode mode : {ActivationMode::kF32, ActivationMode::kInt8}) {
    auto reference = LoadOn(folder(), "ref", {.num_threads = 1, .activations = mode, .isa = ""});
    ASSERT_TRUE(reference.ok()) << reference.status().message();
    const std::vector<float> want = Logits(*reference, tokens);
    for (const int threads : {1, 2, 3}) {
      EXPECT_EQ(Logits(Load(mode, threads), tokens), want) << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::ValuesIn(AllCases()), CaseName);

}  // namespace
}  // namespace tq::test

// GGUF files answer like float64 arithmetic on their dequantized weights: every block format, real
// mixes, a split file; and fast mode is the same on every instruction set.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/checkpoint.h"

namespace tq::test {
namespace {

constexpr double kTolerance = 2e-4;

std::vector<std::string> GgufModels() {
  std::vector<std::string> out;
  for (const char* arch : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const std::string folder = std::string(TQ_TEST_DATA "/gguf/models/") + arch;
    const auto names = ListDirectory(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const std::string base = name.substr(0, name.find(".gguf"));
      if (name.ends_with(".gguf") && FileExists(folder + "/" + base + ".expected.safetensors")) {
        out.push_back(std::string(arch) + "/" + base);
      }
    }
  }
  return out;
}

std::string ModelName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return name;
}

class GgufModel : public testing::TestWithParam<std::string> {
 protected:
  std::string base() const { return TQ_TEST_DATA "/gguf/models/" + GetParam(); }
};

TEST_P(GgufModel, LogitsMatchFloat64Arithmetic) {
  const TensorFile expected(base() + ".expected.safetensors");
  const std::vector<float> want = expected.Floats("logits");
  auto loaded = LoadOn(base() + ".gguf", "",
                       {.num_threads = 2, .activations = ActivationMode::kF32, .isa = ""});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_LE(MaxDifference(Logits(*loaded, expected.Ids("tokens")), want),
            kTolerance * StandardDeviation(want));
}

TEST_P(GgufModel, EveryInstructionSetGivesTheSameBits) {
  const std::vector<int32_t> all = TensorFile(base() + ".expected.safetensors").Ids("tokens");
  const std::vector<int32_t> tokens(all.begin(), all.begin() + 12);
  std::vector<float> first;
  for (const BackendChoice& choice : AvailableBackends()) {
    auto loaded =
        LoadOn(base() + ".gguf", choice.backend,
               {.num_threads = 2, .activations = ActivationMode::kInt8, .isa = choice.isa});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const std::vector<float> logits = Logits(*loaded, tokens);
    if (first.empty()) first = logits;
    EXPECT_EQ(logits, first) << choice.isa;
    EXPECT_EQ(Logits(*loaded, tokens, 1), first) << choice.isa << ", token by token";
  }
}

TEST(GgufModels, AreThere) { EXPECT_GE(GgufModels().size(), 25u); }

INSTANTIATE_TEST_SUITE_P(All, GgufModel, testing::ValuesIn(GgufModels()), ModelName);

}  // namespace
}  // namespace tq::test

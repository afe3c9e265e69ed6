// The one-answer promise through the engine, on real blocks: a request's greedy text is the same
// alone, in any company, for any prefill chunk, as by the plain forward runner.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/checkpoint.h"

namespace tq::test {
namespace {

struct Case {
  const char* model;
  ActivationMode mode;
};

class EngineModel : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto loaded = LoadOn(std::string(TQ_TEST_DATA "/") + GetParam().model, "",
                         {.num_threads = 2, .activations = GetParam().mode, .isa = ""});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    loaded_ = std::move(*loaded);
  }

  std::unique_ptr<Engine> MakeEngine(int64_t chunk, int max_sequences) {
    EngineOptions options;
    options.max_context = 256;
    options.kv_tokens = 256 * max_sequences;
    options.max_sequences = max_sequences;
    options.prefill_chunk = chunk;
    options.kv = KvSettingsFor(*loaded_.backend);
    auto engine = Engine::Create(*loaded_.model, *loaded_.backend, options);
    TQ_CHECK(engine.ok());
    return std::move(*engine);
  }

  static GenerateRequest Request(const std::vector<int32_t>& prompt, float temperature = 0) {
    GenerateRequest request;
    request.prompt = prompt;
    request.max_tokens = 24;
    request.sampling.temperature = temperature;
    request.sampling.seed = prompt.size();
    return request;
  }

  // Prompts of many lengths: shorter and longer than a page, and on its border.
  static std::vector<std::vector<int32_t>> Prompts() {
    std::vector<std::vector<int32_t>> out;
    for (const int length : {1, 5, 63, 64, 65, 130, 200}) {
      std::vector<int32_t> prompt;
      for (int i = 0; i < length; ++i) prompt.push_back((i * 37 + length * 11) % 317 + 3);
      out.push_back(prompt);
    }
    return out;
  }

  std::vector<std::vector<int32_t>> Run(Engine& engine, float temperature, bool together) {
    std::vector<std::vector<int32_t>> out;
    std::vector<std::shared_ptr<TokenStream>> streams;
    const auto drain = [&](TokenStream& stream) {
      out.emplace_back();
      while (const auto id = stream.Next()) out.back().push_back(*id);
    };
    for (const auto& prompt : Prompts()) {
      auto stream = engine.Submit(Request(prompt, temperature));
      TQ_CHECK(stream.ok());
      streams.push_back(*stream);
      if (!together) drain(**stream);
    }
    if (together) {
      for (const auto& stream : streams) drain(*stream);
    }
    return out;
  }

  Loaded loaded_;
};

TEST_P(EngineModel, CompanyAndChunkSizeDoNotChangeTheText) {
  std::vector<std::vector<int32_t>> want;
  for (const auto& prompt : Prompts()) want.push_back(Greedy(loaded_, prompt, 24, {}));
  EXPECT_EQ(Run(*MakeEngine(512, 1), 0, false), want);
  EXPECT_EQ(Run(*MakeEngine(512, 8), 0, true), want);
  EXPECT_EQ(Run(*MakeEngine(7, 8), 0, true), want);
  EXPECT_EQ(Run(*MakeEngine(64, 3), 0, true), want);
}

TEST_P(EngineModel, SampledTextDependsOnItsSeedOnly) {
  const auto want = Run(*MakeEngine(512, 1), 0.8f, false);
  EXPECT_EQ(Run(*MakeEngine(16, 8), 0.8f, true), want);
}

TEST_P(EngineModel, TwoEnginesAtOnceDoNotDisturbEachOther) {
  auto other = LoadOn(std::string(TQ_TEST_DATA "/") + GetParam().model, "",
                      {.num_threads = 1, .activations = GetParam().mode, .isa = ""});
  ASSERT_TRUE(other.ok());
  EngineOptions options;
  options.max_context = 256;
  options.kv = KvSettingsFor(*other->backend);
  auto second = Engine::Create(*other->model, *other->backend, options);
  ASSERT_TRUE(second.ok());
  const auto first = MakeEngine(512, 1);
  const std::vector<int32_t> prompt = Prompts()[4];
  auto a = first->Submit(Request(prompt));
  auto b = (*second)->Submit(Request(prompt));
  ASSERT_TRUE(a.ok() && b.ok());
  std::vector<int32_t> ids_a;
  std::vector<int32_t> ids_b;
  while (const auto id = (*a)->Next()) ids_a.push_back(*id);
  while (const auto id = (*b)->Next()) ids_b.push_back(*id);
  EXPECT_EQ(ids_a, ids_b);
  EXPECT_EQ(ids_a.size(), 24u);
}

INSTANTIATE_TEST_SUITE_P(All, EngineModel,
                         testing::Values(Case{"models/llama", ActivationMode::kInt8},
                                         Case{"models/gemma3_text", ActivationMode::kF32},
                                         Case{"models/deepseek_v32", ActivationMode::kInt8},
                                         Case{"models/gemma4_text", ActivationMode::kInt8},
                                         Case{"models/gpt_oss_mxfp4", ActivationMode::kInt8},
                                         Case{"models/kimi_k3", ActivationMode::kInt8},
                                         Case{"models/kimi_linear", ActivationMode::kF32},
                                         Case{"models/laguna", ActivationMode::kInt8},
                                         Case{"models/nemotron_h_moe", ActivationMode::kInt8},
                                         Case{"models/qwen3_5_moe_text", ActivationMode::kInt8},
                                         Case{"models/qwen4_exp_text", ActivationMode::kInt8},
                                         Case{"turboquant/moe_tq3a_tq2e", ActivationMode::kInt8},
                                         Case{"turboquant/hybrid_qwen3_5", ActivationMode::kInt8},
                                         Case{"turboquant/dense_b3", ActivationMode::kInt8},
                                         Case{"turboquant/dense_b4", ActivationMode::kInt8},
                                         Case{"turboquant/dense_b2", ActivationMode::kF32}));

}  // namespace
}  // namespace tq::test

// Prefix reuse on real blocks: whatever the engine takes from its prefix cache, every logit that it
// samples from has the bits of a cold run.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/checkpoint.h"
#include "support/recording_model.h"

namespace tq::test {
namespace {

struct Case {
  const char* model;
  ActivationMode mode;
  const char* kv = "";  // "" = the mode's own
  int64_t kv_min_tokens = 0;
};

class PrefixReuse : public testing::TestWithParam<Case> {
 protected:
  using Rows = RecordingModel::Rows;
  static constexpr int64_t kAnswer = 12;

  void SetUp() override {
    auto loaded = LoadOn(std::string(TQ_TEST_DATA "/") + GetParam().model, "",
                         {.num_threads = 2, .activations = GetParam().mode, .isa = ""});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    loaded_ = std::move(*loaded);
    prompt_ = Prompt(200, 0);
    branch_ = Prompt(220, 5);
    std::copy(prompt_.begin(), prompt_.begin() + 150, branch_.begin());
  }

  static std::vector<int32_t> Prompt(int length, int salt) {
    std::vector<int32_t> ids;
    for (int i = 0; i < length; ++i) ids.push_back((i * 37 + salt * 11 + i * i) % 300 + 3);
    return ids;
  }

  KvSettings Kv() const {
    return KvSettingsFor(*loaded_.backend, GetParam().kv, GetParam().kv_min_tokens);
  }

  // Rows are complete when every answer has ended.
  std::unique_ptr<Engine> MakeEngine(int64_t kv_tokens, Rows& rows) {
    EngineOptions options;
    options.max_context = 256;
    options.kv_tokens = kv_tokens;
    options.max_sequences = 4;
    options.prefill_chunk = 64;
    options.kv = Kv();
    auto engine = Engine::Create(std::make_unique<RecordingModel>(loaded_, rows), options);
    TQ_CHECK(engine.ok());
    return std::move(*engine);
  }

  struct Outcome {
    std::vector<std::vector<int32_t>> ids;
    std::vector<int64_t> cached;
  };
  static Outcome Run(Engine& engine, const std::vector<std::vector<int32_t>>& prompts,
                     int64_t max_tokens = kAnswer) {
    Outcome out;
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (const auto& prompt : prompts) {
      GenerateRequest request;
      request.prompt = prompt;
      request.max_tokens = max_tokens;
      auto stream = engine.Submit(std::move(request));
      TQ_CHECK(stream.ok());
      streams.push_back(*stream);
    }
    for (const auto& stream : streams) {
      out.ids.emplace_back();
      while (const auto id = stream->Next()) out.ids.back().push_back(*id);
      out.cached.push_back(stream->stats().cached_tokens);
    }
    return out;
  }
  // Alone on an engine without a past.
  Outcome Cold(const std::vector<int32_t>& prompt, Rows& rows, int64_t max_tokens = kAnswer) {
    const Outcome out = Run(*MakeEngine(256, rows), {prompt}, max_tokens);
    TQ_CHECK(out.cached[0] == 0);
    return out;
  }

  Loaded loaded_;
  std::vector<int32_t> prompt_;
  std::vector<int32_t> branch_;  // the first 150 ids are the prompt's
};

// CA-11: the branch leaves the prompt within pages, packed ones too.
TEST_P(PrefixReuse, WarmIsCold) {
  Rows cold_rows;
  const Outcome cold = Cold(prompt_, cold_rows);
  ASSERT_EQ(cold.ids[0], Greedy(loaded_, prompt_, kAnswer, {}, Kv()));
  Rows branch_rows;
  const Outcome branch = Cold(branch_, branch_rows);

  Rows rows;
  const auto engine = MakeEngine(256, rows);
  Run(*engine, {prompt_});
  rows.clear();
  const Outcome again = Run(*engine, {prompt_});
  EXPECT_GE(again.cached[0], 192);
  EXPECT_EQ(again.ids, cold.ids);
  EXPECT_TRUE(rows == cold_rows);

  rows.clear();
  const Outcome part = Run(*engine, {branch_});
  EXPECT_GE(part.cached[0], 128);
  EXPECT_EQ(part.ids, branch.ids);
  EXPECT_TRUE(rows == branch_rows);

  Run(*engine, {Prompt(240, 9)});  // needs every page
  EXPECT_GT(engine->stats().evicted_pages, 0);
  rows.clear();
  const Outcome evicted = Run(*engine, {prompt_});
  EXPECT_EQ(evicted.cached[0], 0);
  EXPECT_EQ(evicted.ids, cold.ids);
  EXPECT_TRUE(rows == cold_rows);
}

TEST_P(PrefixReuse, TogetherIsAlone) {
  Rows cold_rows;
  const Outcome cold = Cold(prompt_, cold_rows);
  const Outcome branch = Cold(branch_, cold_rows);
  Rows rows;
  const auto engine = MakeEngine(1024, rows);
  const Outcome both = Run(*engine, {prompt_, branch_, prompt_});
  EXPECT_EQ(both.ids[0], cold.ids[0]);
  EXPECT_EQ(both.ids[1], branch.ids[0]);
  EXPECT_EQ(both.ids[2], cold.ids[0]);
  EXPECT_GE(both.cached[1] + both.cached[2], 128);
  EXPECT_TRUE(rows == cold_rows);
}

TEST_P(PrefixReuse, AConversationGoesOn) {
  Rows rows;
  const auto engine = MakeEngine(512, rows);
  std::vector<int32_t> prompt = Prompt(106, 1);
  for (int turn = 0; turn < 3; ++turn) {
    Rows cold_rows;
    const Outcome cold = Cold(prompt, cold_rows);
    rows.clear();
    const Outcome warm = Run(*engine, {prompt});
    EXPECT_EQ(warm.ids, cold.ids) << turn;
    EXPECT_TRUE(rows == cold_rows) << turn;
    const auto length = static_cast<int64_t>(prompt.size());
    EXPECT_EQ(warm.cached[0], turn == 0 ? 0 : length - 11) << turn;
    prompt.insert(prompt.end(), warm.ids[0].begin(), warm.ids[0].end());
    for (int i = 0; i < 10; ++i) prompt.push_back(20 + i + turn);
  }
}

TEST_P(PrefixReuse, GivingWayChangesNothing) {
  Rows cold_rows;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::vector<int32_t>> want;
  for (int i = 0; i < 3; ++i) {
    prompts.push_back(Prompt(90 + i, 20 + i));
    want.push_back(Cold(prompts.back(), cold_rows, 60).ids[0]);
  }
  Rows rows;
  const auto engine = MakeEngine(320, rows);
  EXPECT_EQ(Run(*engine, prompts, 60).ids, want);
  EXPECT_GT(engine->stats().preemptions, 0);
  EXPECT_TRUE(rows == cold_rows);
}

std::string Name(const testing::TestParamInfo<Case>& info) {
  std::string name(info.param.model);
  name += info.param.mode == ActivationMode::kF32 ? "_f32" : "_int8";
  if (*info.param.kv != '\0') name += std::string("_kv_") + info.param.kv;
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name;
}

std::vector<Case> Cases() {
  std::vector<Case> out;
  for (const char* model :
       {"models/llama", "models/gemma3_text", "models/gpt_oss_mxfp4", "models/deepseek_v32",
        "models/gemma4_text", "models/kimi_k3", "models/kimi_linear", "models/laguna",
        "models/nemotron_h_moe", "models/qwen3_next", "models/qwen3_5_moe_text",
        "models/qwen4_exp_text", "turboquant/hybrid_qwen3_5", "turboquant/dense_b3"}) {
    for (const ActivationMode mode : {ActivationMode::kF32, ActivationMode::kInt8}) {
      out.push_back({model, mode});
    }
  }
  for (const Case& compressed : {Case{"models/llama", ActivationMode::kInt8, "4/3", 100},
                                 {"models/llama", ActivationMode::kF32, "4/3", 64},
                                 {"models/gemma4_text", ActivationMode::kInt8, "4/3", 64},
                                 {"models/deepseek_v32", ActivationMode::kInt8, "4/4", 1},
                                 {"models/kimi_linear", ActivationMode::kInt8, "8/8"},
                                 {"models/qwen3_next", ActivationMode::kInt8, "8/3", 64},
                                 {"turboquant/dense_b3", ActivationMode::kInt8, "8/8"}}) {
    out.push_back(compressed);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, PrefixReuse, testing::ValuesIn(Cases()), Name);

}  // namespace
}  // namespace tq::test

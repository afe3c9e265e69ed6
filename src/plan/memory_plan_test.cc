// The formula itself, on a model of round numbers.
#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include "cache/prefix_tree.h"
#include "plan/planner.h"
#include "sampling/sampler.h"

namespace tq {
namespace {

// 1 GB of weights, 64 KB of keys and values a token, a state of 4 MB a sequence, 1 MB of scratch
// memory a token of a step.
ModelMemory RoundModel(bool recurrent) {
  ModelMemory model;
  model.weight_bytes = 1'000'000'000;
  const KvLayout layout = {.settings = {}, .num_kv_heads = 8, .head_dim = 64, .v_head_dim = 64};
  model.needs.push_back({.paged = std::vector<KvLayout>(32, layout), .state_floats = 0});
  if (recurrent) model.needs.push_back({.paged = {}, .state_floats = 1'000'000});
  model.vocab_size = 250'000;
  model.max_position_embeddings = 262'144;
  model.workspace = [](const StepShape& shape) -> Result<int64_t> {
    return 1'000'000 * (std::min(shape.prefill_chunk, shape.context) + shape.max_sequences);
  };
  return model;
}

EngineOptions Options(int64_t context, int sequences) {
  EngineOptions options;
  options.max_context = context;
  options.max_sequences = sequences;
  options.kv_tokens = KvCache::PagesFor(context) * kPageTokens * sequences;
  return options;
}

TEST(MemoryPlan, EveryPartIsCounted) {
  const ModelMemory model = RoundModel(true);
  const EngineOptions options = Options(1000, 3);
  const auto charge = ChargeEngine(model, options);
  ASSERT_TRUE(charge.ok());
  EXPECT_EQ(charge->weights, 1'000'000'000);
  const int64_t page = 32 * 64 * 8 * 64 * 2 * 2 + static_cast<int64_t>(sizeof(PrefixNode)) +
                       SamplerScratch::BytesFor(0, kPageTokens);
  EXPECT_EQ(charge->pages, 3 * 16 * page);  // 1000 tokens are 16 pages
  EXPECT_EQ(charge->states, 3 * 4'000'000);
  EXPECT_EQ(charge->checkpoints, (4 + 2 * 3) * 4'000'000);
  EXPECT_EQ(charge->logits, 3 * 250'000 * 4);
  EXPECT_EQ(charge->sampling, SamplerScratch::BytesFor(250'000, 0));
  EXPECT_EQ(charge->workspace, 515 * 1'000'000);
}

// What `plan` recommends, the engine takes as it is; a byte less, and it has to give something up.
TEST(MemoryPlan, AdmissionTakesWhatThePlanSays) {
  for (const bool recurrent : {false, true}) {
    const ModelMemory model = RoundModel(recurrent);
    EngineOptions options = Options(8192, 2);
    if (recurrent) options.state_checkpoints = options.default_checkpoints();
    const auto charge = ChargeEngine(model, options);
    ASSERT_TRUE(charge.ok());
    EngineOptions fitted = options;
    const auto fit = FitEngine(model, charge->total(), fitted);
    ASSERT_TRUE(fit.ok()) << fit.status().message();
    EXPECT_EQ(fitted.kv_tokens, options.kv_tokens);
    EXPECT_EQ(fitted.prefill_chunk, options.prefill_chunk);
    EXPECT_EQ(fitted.state_checkpoints, options.state_checkpoints);
    EXPECT_EQ(fit->total(), charge->total());
    fitted = options;
    ASSERT_TRUE(FitEngine(model, charge->total() - 1, fitted).ok());
    EXPECT_LT(fitted.kv_tokens, options.kv_tokens);
  }
}

TEST(MemoryPlan, AShorterChunkMakesRoomThenItIsRefused) {
  const ModelMemory model = RoundModel(false);
  EngineOptions options = Options(8192, 1);
  const auto charge = ChargeEngine(model, options);
  ASSERT_TRUE(charge.ok());
  EngineOptions fitted = options;
  ASSERT_TRUE(FitEngine(model, charge->total() - 100'000'000, fitted).ok());
  EXPECT_EQ(fitted.prefill_chunk, 256);
  EXPECT_EQ(fitted.kv_tokens, options.kv_tokens);
  const auto refused = FitEngine(model, 1'100'000'000, options);
  EXPECT_EQ(refused.status().code(), StatusCode::kOutOfMemory);
  EXPECT_NE(refused.status().message().find("8192 tokens"), std::string::npos);
}

Machine Fixed(int64_t bytes) {
  return {.name = "test", .total_bytes = bytes, .usable_bytes = bytes, .most_bytes = bytes};
}

// ME-02: a window of 262 K in the config is not what a verdict is about.
TEST(MemoryPlan, ME02_TheWindowIsTheOneAskedForAndTheLargestIsNamed) {
  ModelMemory model = RoundModel(false);
  model.weight_bytes = 5'300'000'000;
  const Planner planner(model, {}, 0);
  const Machine machine = Fixed(8'000'000'000);
  EngineOptions options;
  options.max_context = 8192;
  options.max_sequences = 1;
  const auto plan = planner.Recommend(options, machine);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(FitOn(machine, *plan), Fit::kResident);
  EXPECT_EQ(plan->options.max_context, 8192);
  const auto largest = planner.LargestContext(options, machine);
  ASSERT_TRUE(largest.ok());
  EXPECT_LT(*largest, 262'144);
  options.max_context = *largest;
  EXPECT_EQ(FitOn(machine, *planner.Plan(options)), Fit::kResident);
  options.max_context = *largest + kPageTokens;
  EXPECT_EQ(FitOn(machine, *planner.Plan(options)), Fit::kNone);
}

// ME-03: the logits of a large vocabulary and the step's scratch memory count, and a budget is
// bytes: the exact need fits, one byte less does not.
TEST(MemoryPlan, ME03_WorkspaceAndLogitsCountAndBytesDecide) {
  const ModelMemory model = RoundModel(false);
  const Planner planner(model, {}, 0);
  EngineOptions options;
  options.max_context = 4096;
  options.max_sequences = 64;
  options.prefill_chunk = 2048;
  const auto plan = planner.Plan(options);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->engine.logits, int64_t{64} * 250'000 * 4);
  EXPECT_EQ(plan->engine.workspace, int64_t{2048 + 64} * 1'000'000);
  EXPECT_EQ(FitOn(Fixed(plan->peak()), *plan), Fit::kResident);
  EXPECT_EQ(FitOn(Fixed(plan->peak() - 1), *plan), Fit::kNone);
  Machine busy = Fixed(plan->peak());
  busy.usable_bytes -= 1;
  EXPECT_EQ(FitOn(busy, *plan), Fit::kAfterFreeing);
}

TEST(MemoryPlan, RecommendationsHold) {
  const ModelMemory model = RoundModel(true);
  const Planner planner(model, {}, 0);
  EngineOptions options;
  options.max_context = 4096;
  options.max_sequences = 1;
  const auto full = planner.Plan(options);
  ASSERT_TRUE(full.ok());
  const Machine tight = Fixed(full->peak() - 200'000'000);
  const auto shorter = planner.Recommend(options, tight);
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(shorter->options.prefill_chunk, 256);
  EXPECT_EQ(FitOn(tight, *shorter), Fit::kResident);
  // Nothing helps: the chunk stays as it was asked for.
  EXPECT_EQ(planner.Recommend(options, Fixed(500'000'000))->options.prefill_chunk, 512);
  const auto most = planner.MostSequences(options, Fixed(8'000'000'000), 64);
  ASSERT_TRUE(most.ok());
  EXPECT_GT(*most, 1);
  options.max_sequences = *most;
  EXPECT_EQ(FitOn(Fixed(8'000'000'000), *planner.Plan(options)), Fit::kResident);
  options.max_sequences = *most + 1;
  EXPECT_EQ(FitOn(Fixed(8'000'000'000), *planner.Plan(options)), Fit::kNone);
  options.max_context = 300'000;
  EXPECT_EQ(planner.Plan(options).status().code(), StatusCode::kInvalidArgument);
}

TEST(Machines, A16GibMachineKeepsWhatItsSystemNeeds) {
  const Machine mac = AssumedMachine("mac", int64_t{16} << 30);
  EXPECT_EQ(mac.most_bytes, 15'461'882'266);  // nine tenths
  EXPECT_EQ(AssumedMachine("small", 4'000'000'000).most_bytes, 2'500'000'000);
  EXPECT_EQ(AssumedMachine("tiny", 1'000'000'000).most_bytes, 0);
}

}  // namespace
}  // namespace tq

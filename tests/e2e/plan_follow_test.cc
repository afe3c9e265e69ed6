// What `plan` recommends holds when it is followed: the commands run with its flags, and the system
// itself refuses them more memory than planned (RLIMIT_DATA: whatever a process may write to).
#include <algorithm>
#include <ostream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "e2e/program.h"
#include "support/own_memory.h"

namespace tq::test {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;

struct Case {
  const char* name;
  const char* path;
  const char* kv;  // flags
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

class PlanFollowed : public testing::TestWithParam<Case> {
 protected:
  static constexpr int kContext = 200;

  void SetUp() override {
    if (!kMemoryIsOurs) GTEST_SKIP() << "a sanitizer's memory cannot be limited";
  }

  static Json Plan(int parallel) {
    const Outcome run =
        RunProgram(fmt::format("plan --json --threads 2 --context {} --parallel {} {} --model {}",
                               kContext, parallel, GetParam().kv, GetParam().path));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return ParseOut(run);
  }

  // Shell text that limits what comes behind it to the plan and the tolerance of a plan.
  static std::string Limit(const Json& plan, double share = 1.0) {
    const auto peak = plan["projection"]["peak_bytes"].get<int64_t>();
    const int64_t allowed = peak + std::max(peak * 3 / 100, 16 * kMib);
    // Stacks count as a whole, used or not.
    return fmt::format("ulimit -s 1024; ulimit -d {};",
                       static_cast<int64_t>(static_cast<double>(allowed) * share) / 1024);
  }

  static std::string Prompt(int tokens) {
    std::string ids;
    for (int i = 0; i < tokens; ++i) ids += fmt::format("{}{}", i == 0 ? "" : ",", 3 + i * 7 % 90);
    return ids;
  }

  static std::string Flags(const Json& plan) {
    return fmt::format(
        "--quiet --threads 2 --max-context {} --prefill-chunk {} --memory-gb {:.6f} {}",
        plan["flags"]["max_context"].get<int64_t>(), plan["flags"]["prefill_chunk"].get<int64_t>(),
        plan["flags"]["memory_gb"].get<double>(), GetParam().kv);
  }
};

TEST_P(PlanFollowed, GenerateFillsItsWindow) {
  const Json plan = Plan(1);
  ASSERT_TRUE(plan.contains("flags"));
  const std::string command = fmt::format(
      "generate --json --print-tokens --ignore-eos --temp 0 --max-tokens 8 {} "
      "--prompt-tokens {} --model {}",
      Flags(plan), Prompt(kContext - 8), GetParam().path);
  const Outcome run = RunProgram(command, "", Limit(plan));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(ParseOut(run)["ids"].size(), 8u);
  // The limit bites: with much less the program says so, and nothing else happens.
  const Outcome refused = RunProgram(command, "", Limit(plan, 0.05));
  EXPECT_NE(refused.exit_code, 0);
}

TEST_P(PlanFollowed, SoManyRequestsAtATime) {
  const Json plan = Plan(3);
  EXPECT_EQ(plan["flags"]["max_sequences"], 3);
  EXPECT_EQ(plan["flags"]["kv_tokens"], 3 * 256);  // whole pages
  const Outcome run = RunProgram(
      fmt::format("generate --json --print-tokens --ignore-eos --temp 1 --seed 5 --max-tokens 100 "
                  "--n 3 {} --prompt-tokens {} --model {}",
                  Flags(plan), Prompt(60), GetParam().path),
      "", Limit(plan));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(ParseOut(run)["answers"].size(), 3u);
}

TEST_P(PlanFollowed, BenchStaysWithinIt) {
  const Json plan = Plan(2);
  const Outcome run = RunProgram(
      fmt::format("bench --json --quiet --threads 2 --prefill {} --prefill-chunk {} --depth {} "
                  "--batch 2 --repeat 1 --memory-gb {:.6f} {} --model {}",
                  kContext, plan["flags"]["prefill_chunk"].get<int64_t>(), kContext - 1,
                  plan["flags"]["memory_gb"].get<double>(), GetParam().kv, GetParam().path),
      "", Limit(plan));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto planned = plan["projection"]["peak_bytes"].get<double>();
  // Pages of the checkpoint's file that are mapped count there, too.
  const auto stored = plan["model"]["total_bytes"].get<double>();
  EXPECT_LT(ParseOut(run)["peak_memory_bytes"].get<double>(),
            planned + stored + std::max(0.03 * planned, 16.0 * kMib));
}

const Case kCases[] = {
    {"demo", TQ_SOURCE_DIR "/demo", ""},
    {"demo_kv4", TQ_SOURCE_DIR "/demo", "--kv-bits 4"},
    {"llama", TQ_TEST_DATA "/models/llama", ""},
    {"gemma3_text", TQ_TEST_DATA "/models/gemma3_text", ""},
    {"gpt_oss", TQ_TEST_DATA "/models/gpt_oss", ""},
    {"deepseek_v3", TQ_TEST_DATA "/models/deepseek_v3", ""},
    {"qwen3_5_moe", TQ_TEST_DATA "/models/qwen3_5_moe", ""},
    {"dense_b3", TQ_TEST_DATA "/turboquant/dense_b3", ""},
};

INSTANTIATE_TEST_SUITE_P(Models, PlanFollowed, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace tq::test

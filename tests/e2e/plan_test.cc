// `plan` on local checkpoints.
#include <chrono>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "support/own_memory.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;

const std::string kDemo = TQ_SOURCE_DIR "/demo";

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Plan, FollowedItHolds) {
  const Outcome run = RunProgram("plan --context 1024 --json --model " + kDemo);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["verdict"]["mode"], "resident");
  EXPECT_EQ(json["projection"]["context"], 1024);
  const auto limit = json["flags"]["memory_gb"].get<double>();
  const std::string command = fmt::format(
      "generate --model {} --prompt \"Why?\" --max-tokens 4 --temp 0 --json "
      "--max-context 1024 --prefill-chunk {} ",
      kDemo, json["flags"]["prefill_chunk"].get<int>());
  const Outcome followed = RunProgram(command + fmt::format("--memory-gb {:.6f}", limit));
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  // Much less is refused: the limit was no idle number.
  const Outcome less = RunProgram(command + fmt::format("--memory-gb {:.6f}", limit / 2));
  EXPECT_EQ(CheckError(less, 1, {"memory"}), "");
  // The whole process stays near the plan, though its window is nearly empty here.
  const auto measured = ParseOut(followed)["stats"]["peak_memory_bytes"].get<double>();
  const auto planned = json["projection"]["peak_bytes"].get<double>();
  if (kMemoryIsOurs) {
    EXPECT_LT(measured, planned + std::max(0.03 * planned, 16777216.0));
  }
  const Outcome text = RunProgram("plan --context 1024 --model " + kDemo);
  EXPECT_NE(text.out.find("recommended   --max-context 1024"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("window of 1024 tokens"), std::string::npos) << text.out;
}

TEST(Plan, WhatDoesNotFitSaysByHowMuchAndWhatWould) {
  const Outcome none = RunProgram("plan --json --memory-gb 0.001 --model " + kDemo);
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(ParseOut(none)["verdict"]["mode"], "no-fit");
  EXPECT_EQ(ParseOut(none)["verdict"]["runnable"], false);
  EXPECT_EQ(CheckError({none.exit_code, "", none.err}, 1, {"too much", "window of"}), "");
  const Json all = ParseOut(RunProgram("plan --json --parallel 8 --model " + kDemo));
  const auto peak = all["projection"]["peak_bytes"].get<double>();
  const Outcome tight = RunProgram(
      fmt::format("plan --json --parallel 8 --memory-gb {:.6f} --model {}", 0.9e-9 * peak, kDemo));
  const Json json = ParseOut(tight);
  const auto largest = json["projection"]["largest_context"].get<int64_t>();
  const Outcome smaller =
      RunProgram(fmt::format("plan --json --parallel 8 --context {} --memory-gb {:.6f} --model {}",
                             largest, 0.9e-9 * peak, kDemo));
  if (tight.exit_code == 1) {
    EXPECT_EQ(smaller.exit_code, 0) << smaller.err << largest;
  }
}

TEST(Plan, ASmallerCacheIsNamedWhereItHelpsAndThenItDoes) {
  const std::string command = "plan --json --parallel 64 --model " TQ_TEST_DATA "/models/llama ";
  const Json all = ParseOut(RunProgram(command));
  const auto peak = all["projection"]["peak_bytes"].get<double>();
  const auto cache = all["projection"]["kv_bytes"].get<double>();
  const std::string limit = fmt::format("--memory-gb {:.6f} ", 1e-9 * (peak - 0.3 * cache));
  const Outcome refused = RunProgram(command + limit);
  EXPECT_EQ(CheckError({refused.exit_code, "", refused.err}, 1,
                       {"too much", "--kv-type int8/tq4 makes it fit"}),
            "");
  const Outcome followed = RunProgram(command + limit + "--kv-type int8/tq4");
  ASSERT_EQ(followed.exit_code, 0) << followed.err;
  EXPECT_EQ(ParseOut(followed)["flags"]["kv_type"], "int8/tq4");
  // Without a lack there is no advice.
  EXPECT_EQ(all["warnings"].dump().find("--kv-type"), std::string::npos);
}

// LD-12: damaged index, missing shards, a mistyped path.
TEST(Plan, LD12_IncompleteIsNeverCalledAFit) {
  const TempFolder folder;
  fs::copy(TQ_TEST_DATA "/models/llama", folder / "model");
  const std::string index = folder / "model/model.safetensors.index.json";
  ASSERT_TRUE(WriteFile(index, R"({"metadata": {"total_size": 5000000000}, "weight_map": {
      "model.norm.weight": "model.safetensors", "a": "model-00002-of-00003.safetensors",
      "b": "model-00003-of-00003.safetensors"}})")
                  .ok());
  const Outcome missing = RunProgram("plan --json --model " + (folder / "model"));
  EXPECT_EQ(missing.exit_code, 1);
  const Json json = ParseOut(missing);
  EXPECT_EQ(json["verdict"]["mode"], "incomplete");
  EXPECT_EQ(json["verdict"]["runnable"], false);
  EXPECT_NE(missing.err.find("2 of 3 files"), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find("model-00002-of-00003.safetensors"), std::string::npos);
  EXPECT_NE(missing.err.find("of 5.00 GB"), std::string::npos) << missing.err;

  ASSERT_TRUE(WriteFile(index, "{").ok());
  EXPECT_EQ(CheckError(RunProgram("plan --model " + (folder / "model")), 2, {"index.json"}), "");
  // No server is asked for a path.
  for (const char* path : {"./modles/x", "/modles/x", "~/x", "a/b/c", "modles"}) {
    EXPECT_EQ(CheckError(RunProgram(fmt::format("plan --model '{}'", path), "",
                                    "HF_ENDPOINT=http://127.0.0.1:1"),
                         1, {path, "no such path"}),
              "");
  }
  EXPECT_EQ(RunProgram("plan --context 1 --model " + kDemo).exit_code, 2);
  EXPECT_EQ(RunProgram("plan").exit_code, 2);
}

TEST(Plan, OtherMachinesAndConversions) {
  const Outcome run = RunProgram(
      "plan --json --machine --machine-name mac-mini-16gb --vram-gb 8 --model " TQ_TEST_DATA
      "/models/qwen3_moe");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  EXPECT_EQ(json["machine"]["ram_bytes"], int64_t{16} << 30);
  EXPECT_EQ(json["machine"]["assumed"], true);
  EXPECT_EQ(json["verdict"]["fits_vram"], true);
  ASSERT_GT(json["recipes"].size(), 3u);
  EXPECT_EQ(json["recipes"][0]["recipe"], "");
  double bits = 100;
  for (size_t i = 1; i < json["recipes"].size(); ++i) {
    const Json& recipe = json["recipes"][i];
    EXPECT_LE(recipe["matrix_bits"].get<double>(), bits + 0.1);
    bits = recipe["matrix_bits"].get<double>();
    EXPECT_NEAR(recipe["tokens_per_second_at_most"].get<double>(),
                120e9 / recipe["decode_bytes"].get<double>(), 1.0);
  }
  EXPECT_LT(json["machine"]["usable_bytes"], json["machine"]["most_bytes"]);
  EXPECT_TRUE(json["machine"]["disk_speed"].is_null()) << "another machine's";
  for (const Json& recipe : json["recipes"]) {
    EXPECT_NE(recipe["quality"], "") << recipe;
    EXPECT_LT(recipe["tokens_per_second_when_full"], recipe["tokens_per_second_at_most"]);
    // So small experts all have room, and another machine's disk is not known.
    EXPECT_NEAR(recipe["if_streamed"]["least_bytes"].get<double>(),
                recipe["peak_bytes"].get<double>(), 1.0);
    EXPECT_GT(recipe["if_streamed"]["budget_bytes"], 0);
    EXPECT_TRUE(recipe["if_streamed"]["tokens_per_second_at_most"].is_null());
  }
  EXPECT_EQ(RunProgram("plan --machine-name vax --model " + kDemo).exit_code, 2);
}

// CA-03, CA-10: caches are part of the sum, and a budget that the disk does not have is said.
TEST(Plan, CA03_CachesAreCountedAndCA10_TheDiskIsLookedAt) {
  const TempFolder folder;
  const auto plan = [&](const std::string& flags) {
    const Outcome run = RunProgram("plan --json --context 1024 " + flags + " --model " + kDemo);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return ParseOut(run);
  };
  const Json none = plan("");
  EXPECT_EQ(none["projection"]["disk_copies_bytes"], 0);
  // The prefix cache of a hybrid model keeps states.
  EXPECT_GT(none["projection"]["checkpoint_bytes"], 0);
  const Json cached = plan("--disk-cache " + (folder / "cache"));
  EXPECT_GT(cached["projection"]["disk_copies_bytes"], 0);
  EXPECT_EQ(cached["projection"]["peak_bytes"].get<int64_t>(),
            none["projection"]["peak_bytes"].get<int64_t>() +
                cached["projection"]["disk_copies_bytes"].get<int64_t>());
  EXPECT_EQ(cached["warnings"], Json::array());
  EXPECT_FALSE(fs::exists(folder / "cache")) << "a plan makes nothing";
  const Json large = plan("--disk-cache-budget-gb 1000000 --disk-cache " + (folder / "cache"));
  EXPECT_NE(large["warnings"].dump().find("--disk-cache-budget-gb"), std::string::npos) << large;
}

// RT-02: a longer window than the original is one that the rope's settings allow, and plan and
// engine agree on it.
TEST(Plan, RT02_TheWindowIsTheEnginesOwn) {
  const Outcome run =
      RunProgram("plan --json --context 1000000 --model " TQ_TEST_DATA "/models/llama");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  const Outcome inspect =
      RunProgram("inspect --headers-only --json --model " TQ_TEST_DATA "/models/llama");
  EXPECT_EQ(json["projection"]["context"], ParseOut(inspect)["model"]["max_position_embeddings"]);
  EXPECT_EQ(json["projection"]["context"], json["model"]["max_context"]);
  EXPECT_NE(json["warnings"].dump().find("the model's own window"), std::string::npos);
}

TEST(Plan, LocallyItTakesNoTime) {
  const auto start = std::chrono::steady_clock::now();
  constexpr int kRuns = 3;
  double best = 100;
  for (int i = 0; i < kRuns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(RunProgram("plan --threads 1 --json --model " + kDemo).exit_code, 0);
    best = std::min(best, Seconds(begin));
  }
  std::printf("best of %d: %.0f ms, %.1f s together\n", kRuns, best * 1e3, Seconds(start));
  EXPECT_LT(best, 1.0);  // 50 ms on a quiet machine
}

}  // namespace
}  // namespace tq::test

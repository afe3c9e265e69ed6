// The disk prompt cache through the program: over restarts, kills and other settings.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/program.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;

const std::string kHybrid = TQ_TEST_DATA "/models/qwen3_next";

std::string Generate(const std::string& flags, int prompt_tokens = 150) {
  std::string ids;
  for (int i = 0; i < prompt_tokens; ++i) {
    ids += fmt::format("{}{}", i == 0 ? "" : ",", (i * 37 + i * i) % 300 + 3);
  }
  return fmt::format(
      "generate --model {} --prompt-tokens {} --max-tokens 12 --temp 0 --threads 1 --quiet --json "
      "--print-tokens "
      "{}",
      kHybrid, ids, flags);
}

int64_t CachedTokens(const Json& json) { return json["stats"]["cached_tokens"].get<int64_t>(); }

size_t NumFiles(const std::string& folder, const std::string& extension) {
  size_t count = 0;
  if (!fs::exists(folder)) return 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == extension) ++count;
  }
  return count;
}

TEST(DiskCacheProgram, AnotherRunGoesOn) {
  const TempFolder folder;
  const std::string flags = fmt::format("--disk-cache {} --disk-cache-min-tokens 64", folder / "c");
  const Json cold = ParseOut(RunProgram(Generate("")));
  const Json first = ParseOut(RunProgram(Generate(flags)));
  const Json again = ParseOut(RunProgram(Generate(flags)));
  EXPECT_EQ(first["ids"], cold["ids"]);
  EXPECT_EQ(again["ids"], cold["ids"]);
  EXPECT_EQ(CachedTokens(first), 0);
  EXPECT_EQ(CachedTokens(again), 128);
  // Other arithmetic is another cache.
  const Json exact = ParseOut(RunProgram(Generate(flags + " --activations f32")));
  EXPECT_EQ(CachedTokens(exact), 0);
}

TEST(DiskCacheProgram, WithoutAFolderItIsInTheUsersCache) {
  const TempFolder folder;
  const std::string environment = "XDG_CACHE_HOME=" + folder.path();
  const std::string flags = "--disk-cache --disk-cache-min-tokens 64";
  const Outcome run = RunProgram(Generate(flags), "", environment);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(NumFiles(folder / "turboquant/prompt-cache", ".page"), 0u);
  bool found = false;
  for (const auto& entry : fs::directory_iterator(folder / "turboquant/prompt-cache")) {
    found = found || entry.path().filename().string().starts_with("qwen3_next-");
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(CachedTokens(ParseOut(RunProgram(Generate(flags), "", environment))), 128);
}

TEST(DiskCacheProgram, KilledAtAnyMomentItIsNeverWrong) {
  const TempFolder folder;
  const std::string flags = fmt::format(
      "--disk-cache {} --disk-cache-min-tokens 0 --disk-cache-save-every 64", folder / "c");
  const Json cold = ParseOut(RunProgram(Generate("", 240)));
  for (int i = 0; i < 12; ++i) {
    RunProgram(Generate(flags, 240), "", fmt::format("timeout -s KILL 0.{:03}", 10 + 12 * i));
    if (i % 4 != 3) continue;
    const Json json = ParseOut(RunProgram(Generate(flags, 240)));
    EXPECT_EQ(json["ids"], cold["ids"]) << i;
  }
}

TEST(DiskCacheProgram, AFolderThatCannotBeIsAnError) {
  const TempFolder folder;
  const std::string file = kHybrid + "/config.json";
  EXPECT_EQ(CheckError(RunProgram(Generate("--disk-cache " + file)), 1, {"disk cache", file}), "");
}

}  // namespace
}  // namespace tq::test

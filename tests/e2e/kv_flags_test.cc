// The formats of the KV cache through the program: every command that has their flags, what they
// change and what is refused; the disk prompt cache keeps them apart.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "e2e/program.h"
#include "e2e/small_checkpoint.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;

class KvFlags : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder();
    WriteSmallCheckpoint(model());
    std::string text;
    for (int i = 0; i < 40; ++i) text += fmt::format("line {} of a text of some length\n\n", i * i);
    ASSERT_TRUE(WriteFile(file(), text).ok());
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string model() { return *folder_ / "model"; }
  static std::string file() { return *folder_ / "text.txt"; }

  static std::string Generate(const std::string& flags) {
    std::string ids;
    for (int i = 0; i < 150; ++i) ids += fmt::format("{}{}", i == 0 ? "" : ",", i * 37 % 250 + 3);
    return fmt::format(
        "generate --model {} --prompt-tokens {} --max-tokens 40 --min-tokens 40 --temp 0 "
        "--quiet --json --print-tokens {} {}",
        model(), ids, flags.find("--threads") == std::string::npos ? "--threads 1" : "", flags);
  }
  static Json Ids(const std::string& flags) {
    const Json json = ParseOut(RunProgram(Generate(flags)));
    EXPECT_EQ(json["ids"].size(), 40u) << flags;
    return json["ids"];
  }

  static TempFolder* folder_;
};

TempFolder* KvFlags::folder_ = nullptr;

TEST_F(KvFlags, OneFormatByEachOfItsNames) {
  const Json exact = Ids("");
  EXPECT_EQ(Ids("--kv-bits 16"), exact);
  EXPECT_EQ(Ids("--kv-type f16"), exact);
  EXPECT_EQ(Ids("--kv-type f16/f16"), exact);
  // Everything is inside the exact pages.
  EXPECT_EQ(Ids("--kv-bits 2 --kv-min-tokens 190"), exact);
  const Json two = Ids("--kv-bits 2");
  EXPECT_NE(two, exact);
  EXPECT_EQ(Ids("--kv-type tq2"), two);
  EXPECT_EQ(Ids("--kv-k-bits 2 --kv-v-bits 2 --kv-group-size 64"), two);
  for (const char* kv : {"bf16", "f32", "int8", "tq3", "tq4", "tq5", "tq6", "tq7", "tq8",
                         "int8/tq3", "f16/tq4", "tq4/bf16"}) {
    Ids(fmt::format("--kv-type {} --kv-group-size 16", kv));
    Ids(fmt::format("--kv-type {} --activations f32", kv));
  }
}

TEST_F(KvFlags, ChunksAndThreadsDoNotMatter) {
  for (const char* kv : {"int8", "tq4/tq3"}) {
    const std::string flags = fmt::format("--kv-type {} --kv-min-tokens 1 ", kv);
    const Json ids = Ids(flags);
    EXPECT_EQ(Ids(flags + "--prefill-chunk 17"), ids) << kv;
    EXPECT_EQ(Ids(flags + "--threads 2"), ids) << kv;
  }
}

TEST_F(KvFlags, AConversationInFourBits) {
  const std::string command = "chat --model " + model() +
                              " --threads 1 --json --max-tokens 8 --min-tokens 8 --temp 0 "
                              "--kv-bits 4 --kv-min-tokens 64 --disk-cache-min-tokens 64 "
                              "--disk-cache " +
                              *folder_ / "chat";
  const std::string script = std::string(200, 'a') + "\nhi\n";
  const Outcome first = RunProgram(command, script);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome again = RunProgram(command, script);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto turn = [](const Outcome& outcome) {
    return ParseJson(outcome.out.substr(0, outcome.out.find('\n')), "stdout").value();
  };
  EXPECT_EQ(turn(again)["ids"], turn(first)["ids"]);
  EXPECT_EQ(turn(first)["stats"]["cached_tokens"], 0);
  EXPECT_GE(turn(again)["stats"]["cached_tokens"], 192);
}

TEST_F(KvFlags, OtherSettingsAreAnotherDiskCache) {
  const std::string disk =
      fmt::format("--disk-cache {} --disk-cache-min-tokens 64 ", *folder_ / "disk");
  const std::vector<std::string> settings = {"",
                                             "--kv-type bf16",
                                             "--kv-bits 8",
                                             "--kv-type tq8",
                                             "--kv-bits 4",
                                             "--kv-bits 4 --kv-group-size 32",
                                             "--kv-bits 4 --kv-min-tokens 64",
                                             "--kv-bits 4 --kv-min-tokens 128",
                                             "--kv-k-bits 4 --kv-v-bits 3",
                                             "--kv-k-bits 3 --kv-v-bits 4",
                                             "--activations f32",
                                             "--activations f32 --kv-type f16"};
  std::vector<Json> cold;
  for (const std::string& flags : settings) {
    const Json json = ParseOut(RunProgram(Generate(disk + flags)));
    EXPECT_EQ(json["stats"]["cached_tokens"], 0) << flags;
    cold.push_back(json["ids"]);
  }
  for (size_t i = 0; i < settings.size(); ++i) {
    const Json json = ParseOut(RunProgram(Generate(disk + settings[i])));
    EXPECT_EQ(json["stats"]["cached_tokens"], 149) << settings[i];
    EXPECT_EQ(json["ids"], cold[i]) << settings[i];
  }
}

TEST_F(KvFlags, EvaluateComparesThem) {
  const std::string base = "evaluate --json --seq-len 128 --num-samples 2 --model " + model() +
                           " --text " + file() + " ";
  const Json json = ParseOut(RunProgram(base + "--kv 8/8,4/4,4/3,2/2 --kv-group-size 32"));
  ASSERT_EQ(json["rows"].size(), 5u);
  EXPECT_EQ(json["rows"][0]["kv"], "f16");
  EXPECT_EQ(json["rows"][0]["kl"], 0);
  EXPECT_EQ(json["rows"][2]["kv"], "K4/V4 group 32");
  for (size_t i = 1; i + 1 < 5; ++i) {
    EXPECT_LT(json["rows"][i]["kl"], json["rows"][i + 1]["kl"]);
    EXPECT_GT(json["rows"][i]["bytes_per_token"], json["rows"][i + 1]["bytes_per_token"]);
  }
  // The perplexity of one setting is that of the table.
  const Json one = ParseOut(RunProgram(base + "--kv-bits 4 --kv-group-size 32"));
  EXPECT_EQ(one["perplexity"], json["rows"][2]["perplexity"]);
}

TEST_F(KvFlags, WhatCannotBeIsOneLine) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> usage = {
      {"--kv-bits 9", {"--kv-bits", "9"}},
      {"--kv-bits 1", {"--kv-bits", "1"}},
      {"--kv-type tq4/x", {"--kv-type", "x"}},
      {"--kv-type tq4/tq4/tq4", {"--kv-type", "tq4/tq4"}},
      {"--kv-type ''", {"--kv-type"}},
      {"--kv-k-bits 4", {"--kv-k-bits", "--kv-v-bits"}},
      {"--kv-v-bits 4", {"--kv-k-bits", "--kv-v-bits"}},
      {"--kv-bits 4 --kv-type int8", {"--kv-bits", "--kv-type"}},
      {"--kv-bits 4 --kv-group-size 48", {"--kv-group-size", "48"}},
      {"--kv-bits 4 --kv-min-tokens -1", {"--kv-min-tokens", "-1"}},
      {"--disk-cache x --disk-cache-budget-gb 0", {"--disk-cache-budget-gb"}},
      {"--disk-cache x --disk-cache-save-every 0", {"--disk-cache-save-every"}},
      {"--disk-cache-min-tokens 5", {"--disk-cache-min-tokens", "--disk-cache"}},
      {"--disk-cache-no-prefill-checkpoints", {"--disk-cache"}}};
  for (const auto& [flags, parts] : usage) {
    EXPECT_EQ(CheckError(RunProgram(Generate(flags)), 2, parts), "") << flags;
  }
  EXPECT_EQ(CheckError(RunProgram(Generate("--kv-min-tokens 64")), 1, {"--kv-min-tokens"}), "");
  const std::string evaluate = "evaluate --model " + model() + " --text " + file() + " ";
  EXPECT_EQ(CheckError(RunProgram(evaluate + "--kv 8/8,,4/4"), 2, {"--kv"}), "");
  EXPECT_EQ(CheckError(RunProgram(evaluate + "--kv 8/8 --kv-bits 4"), 2, {"--kv"}), "");
}

}  // namespace
}  // namespace tq::test

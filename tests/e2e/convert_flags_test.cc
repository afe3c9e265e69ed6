// `turboquant convert` as a user calls it: recipes, flags of the published converter, their errors.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace tq::test {
namespace {

const std::string kModels = TQ_TEST_DATA "/models/";

Json ParseFile(const std::string& path) {
  const auto text = ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *ParseJson(*text, path) : Json();
}

Outcome ConvertModel(const std::string& model, const std::string& flags) {
  return RunProgram("convert --quiet --threads 2 --hf-path " + kModels + model + " " + flags);
}

TEST(ConvertFlags, ARecipeNamesTheFolder) {
  const TempFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Outcome run = RunProgram(fmt::format(
      "convert --hf-path {}qwen3_moe/ --recipe tq3a-tqTe-down4 --quantize-extras --json", kModels));
  std::filesystem::current_path(before);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string name = "qwen3_moe-tq3a-tqTe-down4-g64-x4";
  EXPECT_EQ(ParseJson(run.out, "stdout")->at("output"), name);
  const Json config = ParseFile(folder / name + "/config.json");
  EXPECT_EQ(config["quantization"]["ternary_experts"], true);
  EXPECT_EQ(config["quantization"]["expert_down_bits"], 4);
  EXPECT_EQ(config["quantization"]["affine_extras"], (Json{{"bits", 4}, {"group_size", 64}}));
  EXPECT_TRUE(FileExists(folder / name + "/README.md"));

  const Outcome answer = RunProgram(
      "generate --quiet --prompt-tokens 5,9,200,31 --print-tokens "
      "--max-tokens 4 --model " +
      (folder / name));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
}

TEST(ConvertFlags, FlagsOverruleTheRecipe) {
  const TempFolder folder;
  const std::string out = folder / "out";
  const Outcome run = ConvertModel(
      "llama", "--recipe tq3a-tq2e-g32-x8 --bits 4 --extras-group-size 32 --mlx-path " + out +
                   " --use-qjl --attn-bits 3 --trust-remote-code --streaming");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const Json block = ParseFile(out + "/config.json")["quantization"];
  EXPECT_EQ(block["bits"], 4);
  EXPECT_EQ(block["attn_bits"], 3);
  EXPECT_EQ(block["mlp_bits"], 2);
  EXPECT_EQ(block["group_size"], 32);
  EXPECT_EQ(block["use_qjl"], true);
  EXPECT_EQ(block["affine_extras"], (Json{{"bits", 8}, {"group_size", 32}}));
  EXPECT_FALSE(block.contains("protect_bits"));
}

TEST(ConvertFlags, TiersComeFromAFile) {
  const TempFolder folder;
  const std::string tiers = folder / "tiers.json";
  ASSERT_TRUE(WriteFile(tiers, R"({"tiers": {"0": "ternary", "3": "4"}})").ok());
  const std::string out = folder / "out";
  const Outcome run = ConvertModel(
      "qwen3_moe", "-g 32 --expert-layer-tiers " + tiers + " --dtype float16 --out " + out);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json config = ParseFile(out + "/config.json");
  EXPECT_EQ(config["quantization"]["expert_layer_tiers"], (Json{{"0", "ternary"}, {"3", "4"}}));
  EXPECT_EQ(config["dtype"], "float16");

  ASSERT_TRUE(WriteFile(tiers, R"({"9": "2"})").ok());
  const std::string other = " --out " + (folder / "other");
  EXPECT_EQ(CheckError(ConvertModel("qwen3_moe", "--expert-layer-tiers " + tiers + other), 1,
                       {"layer 9 has no routed experts", "0, 1, 2, 3"}),
            "");
  ASSERT_TRUE(WriteFile(tiers, R"({"0": "2"})").ok());
  EXPECT_EQ(CheckError(ConvertModel("qwen3_moe",
                                    "--expert-down-bits 4 --expert-layer-tiers " + tiers + other),
                       1, {"expert layer tiers and expert down bits", "give one of them"}),
            "");
  EXPECT_EQ(CheckError(ConvertModel("qwen3_moe",
                                    "--mlp-group-size 128 --expert-layer-tiers " + tiers + other),
                       1, {"no multiple of the group 128", "tier cannot be written"}),
            "");
  EXPECT_FALSE(IsDirectory(folder / "other"));
}

TEST(ConvertFlags, SettingsWithoutEffectAreWarnings) {
  const TempFolder folder;
  const Outcome run = ConvertModel("llama",
                                   "--ternary-experts --protect-expert-layers 1 --keep-mtp "
                                   "--extras-bits 8 --json --out " +
                                       (folder / "out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string warnings = ParseJson(run.out, "stdout")->at("warnings").dump();
  for (const char* part :
       {"--extras-bits and --extras-group-size have no effect", "protected layer 1",
        "settings for experts have no effect", "no draft head"}) {
    EXPECT_NE(warnings.find(part), std::string::npos) << part << " in " << warnings;
  }
}

TEST(ConvertFlags, BadOnesAreOneLine) {
  for (const char* flags :
       {"--expert-down-bits 5", "--protect-bits 1", "--extras-bits 5", "--extras-group-size 16",
        "--dtype int8", "--mlp-bits 0", "--protect-expert-layers 1 --expert-layer-tiers x"}) {
    EXPECT_EQ(CheckError(ConvertModel("llama", flags), 2, {"--help"}), "") << flags;
  }
  EXPECT_EQ(CheckError(ConvertModel("llama", "--recipe tq3a-tq9e"), 1, {"recipe", "tq9e"}), "");
  EXPECT_EQ(CheckError(ConvertModel("llama", "--protect-expert-layers 3-1"), 1,
                       {"--protect-expert-layers", "3-1"}),
            "");
  EXPECT_EQ(CheckError(ConvertModel("llama", "--expert-layer-tiers /none.json"), 1,
                       {"--expert-layer-tiers", "/none.json"}),
            "");
}

}  // namespace
}  // namespace tq::test

// The program on checkpoints without a tokenizer: conversion, ids in and out, logits, errors.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "e2e/program.h"
#include "support/checkpoint.h"

namespace tq::test {
namespace {

const std::string kLlama = TQ_TEST_DATA "/models/llama";

std::string Join(const std::vector<int32_t>& ids, const char* separator) {
  return fmt::format("{}", fmt::join(ids, separator));
}

// One conversion to 3 bits serves all tests.
class Cli : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder();
    converted_ =
        new Outcome(RunProgram(fmt::format("convert --hf-path {} --mlx-path {} --bits 3 "
                                           "--group-size 32 --threads 1 --json",
                                           kLlama, *folder_ / "b3")));
  }
  static void TearDownTestSuite() {
    delete converted_;
    delete folder_;
  }
  static std::string b3() { return *folder_ / "b3"; }

  static TempFolder* folder_;
  static Outcome* converted_;
};

TempFolder* Cli::folder_ = nullptr;
Outcome* Cli::converted_ = nullptr;

TEST_F(Cli, VersionNamesTheInstructionSets) {
  const Outcome text = RunProgram("--version");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.out.find("turboquant "), 0u);
  const Json json = ParseOut(RunProgram("--version --json"));
  EXPECT_EQ(json["available"].back(), "ref/scalar");
  EXPECT_EQ(json["chosen"], json["available"].front());
}

TEST_F(Cli, BenchTimesEveryDepthAndBatch) {
  const Outcome run = RunProgram(fmt::format(
      "bench --model {} --prefill 16 --depth 0,70 --batch 1,3 --repeat 1 --json", b3()));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  ASSERT_EQ(json["rows"].size(), 5u);
  for (const Json& row : json["rows"]) EXPECT_GT(row["tokens_per_second"].get<double>(), 0);
  EXPECT_EQ(json["rows"][4]["batch"], 3);
  EXPECT_EQ(json["rows"][4]["depth"], 70);
  const Outcome unknown = RunProgram("bench --synthetic nope");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("qwen3-4b"), std::string::npos);
}

TEST_F(Cli, HelpOfEveryCommandEndsWithExamples) {
  for (const char* command : {"", "convert", "calibrate", "generate", "chat", "evaluate", "bench",
                              "inspect", "tokenize", "pull", "doctor"}) {
    const Outcome help = RunProgram(std::string(command) + " --help");
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_EQ(help.err, "") << command;
    const size_t examples = help.out.find("\nExamples:\n");
    ASSERT_NE(examples, std::string::npos) << command;
    EXPECT_NE(help.out.find(std::string("  turboquant ") + command, examples), std::string::npos);
  }
}

TEST_F(Cli, ConvertReportsWhatItDid) {
  ASSERT_EQ(converted_->exit_code, 0) << converted_->err;
  EXPECT_EQ(converted_->err, "");
  const Json json = ParseOut(*converted_);
  EXPECT_EQ(json["quantized_matrices"], 4 * 7 + 1);  // and the head
  EXPECT_NEAR(json["quantized_bits_per_weight"].get<double>(), 4.0, 1.0);
  EXPECT_LT(json["output_bytes"], json["source_bytes"]);
  EXPECT_TRUE(FileExists(b3() + "/config.json"));
  EXPECT_TRUE(FileExists(b3() + "/model.safetensors"));
}

TEST_F(Cli, ConvertRefusesAnExistingFolderAndLeavesIt) {
  const Outcome again = RunProgram("convert --model " + kLlama + " --out " + b3());
  EXPECT_EQ(CheckError(again, 1, {b3()}), "");
  EXPECT_EQ(again.out, "");
  EXPECT_TRUE(FileExists(b3() + "/config.json"));
}

TEST_F(Cli, AFailedConversionLeavesNothing) {
  const std::string target = *folder_ / "none";
  const Outcome outcome =
      RunProgram("convert --hf-path " + b3() + " --mlx-path " + target);  // TurboQuant already
  EXPECT_EQ(CheckError(outcome, 1, {"already"}), "");
  for (const auto& entry : std::filesystem::directory_iterator(folder_->path())) {
    EXPECT_EQ(entry.path().filename().string().find("none"), std::string::npos) << entry.path();
  }
}

TEST_F(Cli, TheAnswerDoesNotDependOnThreadsChunksOrBackend) {
  const std::string base =
      "generate --model " + b3() +
      " --prompt-tokens 5,9,200,31,7,8,90,11,12 --print-tokens --max-tokens 24 --quiet ";
  const Outcome first = RunProgram(base + "--threads 1");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  EXPECT_EQ(std::count(first.out.begin(), first.out.end(), '\n'), 1);
  for (const char* other : {"--threads 2", "--threads 3 --prefill-chunk 1", "--prefill-chunk 4",
                            "--backend ref --threads 2"}) {
    EXPECT_EQ(RunProgram(base + other).out, first.out) << other;
  }
  const std::string sampled = base + "--temp 1.5 --seed 7 ";
  EXPECT_EQ(RunProgram(sampled + "--threads 1").out, RunProgram(sampled + "--threads 2").out);
  EXPECT_NE(RunProgram(sampled).out, RunProgram(base + "--temp 1.5 --seed 8").out);
}

TEST_F(Cli, GreedyIdsAreTheReferences) {
  const TensorFile expected(kLlama + "/expected.safetensors");
  const std::vector<int32_t> want = expected.Ids("greedy");
  // The reference never takes the end token: min-tokens forbids it likewise.
  const Outcome outcome = RunProgram(fmt::format(
      "generate --model {} --prompt-tokens {} --print-tokens --max-tokens {} --min-tokens {} "
      "--activations f32 --quiet",
      kLlama, Join(expected.Ids("greedy_prompt"), ","), want.size(), want.size()));
  EXPECT_EQ(outcome.out, Join(want, " ") + "\n") << outcome.err;
}

TEST_F(Cli, JsonHasIdsAndStatistics) {
  const Json json = ParseOut(
      RunProgram("generate --model " + b3() +
                 " --prompt-tokens 5,9 --print-tokens --max-tokens 4 --min-tokens 4 --json"));
  EXPECT_EQ(json["ids"].size(), 4u);
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["stats"]["prompt_tokens"], 2);
  EXPECT_EQ(json["stats"]["generated_tokens"], 4);
  EXPECT_GT(json["stats"]["peak_memory_bytes"], 1 << 20);
}

TEST_F(Cli, LogitsMatchTheReference) {
  const TensorFile expected(kLlama + "/expected.safetensors");
  const std::string out = *folder_ / "logits.safetensors";
  const Outcome outcome = RunProgram(
      fmt::format("evaluate --model {0} --tokens {0}/expected.safetensors --logits {1} --hidden "
                  "--activations f32 --prefill-chunk 16 --quiet",
                  kLlama, out));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const TensorFile found(out);
  const std::vector<float> want = expected.Floats("logits");
  EXPECT_LE(MaxDifference(found.Floats("logits"), want), 2e-4 * StandardDeviation(want));
  EXPECT_EQ(found.Find("logits")->shape, expected.Find("logits")->shape);
  EXPECT_EQ(found.Find("hidden")->shape, expected.Find("hidden")->shape);
}

TEST_F(Cli, LogitsOfAListOfIds) {
  const std::string tokens = *folder_ / "ids.json";
  ASSERT_TRUE(WriteFile(tokens, "[1, 2, 3, 319]").ok());
  const std::string out = *folder_ / "list.safetensors";
  const std::string command =
      "evaluate --model " + b3() + " --tokens " + tokens + " --logits " + out;
  ASSERT_EQ(RunProgram(command).exit_code, 0);
  EXPECT_EQ(TensorFile(out).Find("logits")->shape, (Shape{4, 320}));
  EXPECT_EQ(RunProgram(command + " --json").exit_code, 0);  // replaces the file
}

TEST_F(Cli, InspectShowsFormatsAndKernels) {
  const Json headers = ParseOut(RunProgram("inspect --headers-only --json --model " + b3()));
  EXPECT_EQ(headers["model"]["num_hidden_layers"], 4);
  EXPECT_FALSE(headers.contains("prepared_bytes"));
  const Json loaded = ParseOut(RunProgram("inspect --json --tensors --model " + b3()));
  EXPECT_GT(loaded["prepared_bytes"], 0);
  EXPECT_EQ(loaded["kv_bytes_per_token"], 4 * 2 * 2 * 32 * 2);  // layers, K and V, heads, size, f16
  EXPECT_EQ(loaded["tensors"].size(), loaded["num_tensors"]);
  bool found = false;
  for (const Json& kind : loaded["matrices"]) {
    if (kind["kind"] != "self_attn.q_proj") continue;
    found = true;
    EXPECT_EQ(kind["count"], 4);
    EXPECT_EQ(kind["format"], "turboquant 3-bit g32 hadamard");
    EXPECT_FALSE(kind["kernel"].get<std::string>().empty());
  }
  EXPECT_TRUE(found);
}

TEST_F(Cli, BadFlagsAreUsageErrors) {
  for (const char* args : {"",
                           "nonsense",
                           "generate",
                           "generate --model",
                           "generate --model x --nonsense",
                           "generate --model x --prompt-tokens 1,b",
                           "generate --model x --prompt a --prompt-tokens 1",
                           "generate --model x --backend gpu",
                           "generate --model x --top-p 2",
                           "generate --model x --logit-bias 3:4",
                           "generate --model x --max-tokens many",
                           "convert --hf-path x --bits 5",
                           "convert --hf-path x --group-size 48",
                           "convert --hf-path x --rotation spin",
                           "convert --hf-path x --target-bpw 3",
                           "convert --hf-path x --target-bpw 3 --calibration c --bits 4",
                           "convert --hf-path x --rounding rms --calibration c",
                           "evaluate --model x",
                           "evaluate --model x --reference y",
                           "evaluate --model x --tokens t",
                           "evaluate --model x --text t --seq-len 1",
                           "chat --model x --quiet --verbose"}) {
    EXPECT_EQ(CheckError(RunProgram(args), 2, {"--help"}), "") << args;
  }
}

TEST_F(Cli, FailuresAreOneLine) {
  const std::string tokens = *folder_ / "bad.json";
  const auto evaluate = [&](const std::string& content) {
    EXPECT_TRUE(WriteFile(tokens, content).ok());
    return RunProgram("evaluate --model " + kLlama + " --tokens " + tokens + " --logits " +
                      (*folder_ / "bad.safetensors"));
  };
  EXPECT_EQ(CheckError(evaluate("[1, 320]"), 1, {"token 1", "320"}), "");
  EXPECT_EQ(CheckError(evaluate("[1, -1]"), 1, {"token 1", "-1"}), "");
  EXPECT_EQ(CheckError(evaluate("[]"), 1, {"found none"}), "");
  EXPECT_EQ(CheckError(evaluate("{"), 1, {"bad.json"}), "");
  EXPECT_EQ(CheckError(evaluate("[1, 99999999999]"), 1, {"99999999999"}), "");
  std::string many = "[1";
  for (int i = 0; i < 512; ++i) many += ",1";
  EXPECT_EQ(CheckError(evaluate(many + "]"), 1, {"512", "513"}), "");
  EXPECT_FALSE(FileExists(*folder_ / "bad.safetensors"));

  EXPECT_EQ(CheckError(RunProgram("inspect --model " + (*folder_ / "missing")), 1, {"missing"}),
            "");
  EXPECT_EQ(CheckError(RunProgram("generate --prompt hi --model " + kLlama), 1, {"tokenizer.json"}),
            "");
  const std::string ids = "generate --print-tokens --model " + kLlama + " --prompt-tokens ";
  EXPECT_EQ(CheckError(RunProgram(ids + "1,320"), 1, {"prompt[1]", "320"}), "");
  EXPECT_EQ(CheckError(RunProgram(ids + "1,2,3 --max-context 3"), 1, {"context"}), "");
  EXPECT_EQ(CheckError(RunProgram(ids + "1,2,3 --max-context 513"), 1, {"512", "513"}), "");
  EXPECT_EQ(CheckError(RunProgram(ids + "1 --memory-gb 0.0001"), 1, {"memory"}), "");
  EXPECT_EQ(CheckError(RunProgram(ids + "1 --isa mmx"), 1, {"mmx"}), "");
}

TEST_F(Cli, AMemoryLimitShortensTheContext) {
  const Outcome outcome = RunProgram(
      "generate --print-tokens --quiet --max-tokens 2 --min-tokens 2 "
      "--prompt-tokens 1,2 --memory-gb 0.01 --model " +
      b3());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

}  // namespace
}  // namespace tq::test

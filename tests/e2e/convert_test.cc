// convert beyond its default: exports, --dry-run, --resume after a kill.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "e2e/small_checkpoint.h"

namespace tq::test {
namespace {

const std::string kLlama = TQ_TEST_DATA "/models/llama";

class ConvertCommand : public testing::Test {
 protected:
  static std::map<std::string, std::string> Contents(const std::string& folder) {
    std::map<std::string, std::string> out;
    const auto names = ListDirectory(folder);
    EXPECT_TRUE(names.ok()) << names.status().message();
    if (!names.ok()) return out;
    for (const std::string& name : *names) out[name] = *ReadTextFile(folder + "/" + name);
    return out;
  }

  TempFolder folder_;
};

TEST_F(ConvertCommand, GoesOnAfterAKill) {
  const std::string flags = "convert --hf-path " + kLlama +
                            " --bits 4 --group-size 32 --max-shard-size 4000 --threads 1 --quiet";
  ASSERT_EQ(RunProgram(flags + " --mlx-path " + folder_ / "whole").exit_code, 0);
  const std::string out = folder_ / "out";
  const std::string manifest = folder_ / ".out.partial/.resume";
  // Kills the program as soon as its third file is finished.
  const std::string script = fmt::format(
      "'{}' {} --mlx-path {} --resume >/dev/null 2>&1 & pid=$!\n"
      "while [ ! -e {} ]; do\n"
      "  if grep -qs model-00003-of- {}; then kill -9 $pid; break; fi\n"
      "done\n"
      "wait $pid 2>/dev/null; true",
      TQ_PROGRAM, flags, out, out, manifest);
  const std::string file = folder_ / "script.sh";
  ASSERT_TRUE(WriteFile(file, script).ok());
  ASSERT_EQ(std::system(("bash " + file).c_str()), 0);
  ASSERT_FALSE(FileExists(out)) << "the program was not killed in time";
  ASSERT_TRUE(FileExists(manifest));
  const Outcome resumed = RunProgram(flags + " --mlx-path " + out + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(Contents(out), Contents(folder_ / "whole"));
  EXPECT_FALSE(FileExists(folder_ / ".out.partial"));
}

TEST_F(ConvertCommand, DryRunWritesNothing) {
  const std::string flags = "convert --hf-path " + kLlama + " --bits 3 --attn-bits 4 --dry-run";
  const std::string out = folder_ / "out";
  const Json json = ParseOut(RunProgram(flags + " --json --mlx-path " + out));
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["widths"].size(), 2u);
  EXPECT_GT(json["estimated_seconds"], 0.0);
  const Outcome text = RunProgram(flags + " --mlx-path " + out);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("token embeddings"), std::string::npos);
  EXPECT_FALSE(FileExists(out));
  EXPECT_EQ(CheckError(RunProgram("convert --dry-run --hf-path " + folder_ / "none"), 1,
                       {"no such folder"}),
            "");
}

TEST_F(ConvertCommand, ExportsToGgufAndBack) {
  const std::string source = folder_ / "small";
  WriteSmallCheckpoint(source);
  const std::string gguf = folder_ / "small.gguf";
  const Json report =
      ParseOut(RunProgram("convert --to gguf --hf-path " + source + " --out " + gguf + " --json"));
  EXPECT_EQ(report["type"], "F16");
  const std::string hf = folder_ / "hf";
  const Outcome back =
      RunProgram("convert --to hf --dtype bfloat16 --hf-path " + gguf + " --out " + hf);
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_NE(back.out.find("matrices as BF16"), std::string::npos) << back.out;
  const std::string prompt = " --prompt 'Hello, world' --max-tokens 8 --activations f32 --quiet";
  const Outcome want = RunProgram("generate --model " + source + prompt);
  ASSERT_EQ(want.exit_code, 0) << want.err;
  // Ids of the random model that are no token got a placeholder.
  const std::regex placeholder("\\[PAD[0-9]+\\]");
  for (const std::string& model : {gguf, hf}) {
    const Outcome answer = RunProgram("generate --model " + model + prompt);
    EXPECT_EQ(std::regex_replace(answer.out, placeholder, ""), want.out) << answer.err;
  }
}

TEST_F(ConvertCommand, FlagsOfAnotherTargetAreRefused) {
  const std::string base = "convert --hf-path " + kLlama + " --out " + (folder_ / "x") + " ";
  const auto error = [&](const std::string& flags, const std::string& part) {
    return CheckError(RunProgram(base + flags), 1, {part});
  };
  EXPECT_EQ(error("--to hf --bits 3", "--bits is a setting of --to turboquant"), "");
  EXPECT_EQ(error("--to hf --type f16", "--type is a setting of --to gguf"), "");
  EXPECT_EQ(error("--to gguf --dtype float16", "--dtype is a setting of --to turboquant"), "");
  EXPECT_EQ(error("--to hf --dtype float32", "expected bfloat16 or float16"), "");
  EXPECT_EQ(error("--to gguf", "expected a file name that ends in .gguf"), "");
  EXPECT_FALSE(FileExists(folder_ / "x"));
}

}  // namespace
}  // namespace tq::test

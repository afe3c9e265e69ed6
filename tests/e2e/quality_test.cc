// From a text to a checkpoint with chosen widths, and how far it is from the original.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace tq::test {
namespace {

Json RunJson(const std::string& arguments) {
  const Outcome outcome = RunProgram(arguments + " --json --threads 1");
  EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.err;
  return ParseOut(outcome);
}

TEST(Quality, TargetWidthsBeatTheUniformOnes) {
  const TempFolder folder;
  const std::string demo = TQ_SOURCE_DIR "/demo";
  const std::string text = TQ_SOURCE_DIR "/demo/README.md";
  const std::string calibration = folder / "c";
  RunJson("calibrate --model " + demo + " --text " + text + " -n 4 --seq-len 64 --out " +
          calibration);
  const auto convert = [&](const std::string& name, const std::string& flags) {
    return RunJson("convert --hf-path " + demo + " --mlx-path " + (folder / name) + " " + flags);
  };
  const auto divergence = [&](const std::string& name) {
    const Json json = RunJson("evaluate --model " + (folder / name) + " --reference " + demo +
                              " --text " + text + " --seq-len 64 --activations f32");
    EXPECT_GT(json["reference_perplexity"], 1);
    return json["kl"].get<double>();
  };
  const Json uniform = convert("b2", "--bits 2 --rounding rms");
  const std::string target = "--calibration " + calibration + " --target-bpw 2.7";
  const Json chosen = convert("target", target);
  EXPECT_LE(chosen["quantized_bits_per_weight"], 2.7);
  EXPECT_GT(chosen["quantized_bits_per_weight"], 2.6);
  EXPECT_EQ(chosen["widths"]["kinds"].size(), 13u);  // the head is the embedding
  EXPECT_LT(divergence("target"), 0.7 * divergence("b2"));

  // What was measured is kept, so that the answer is the same without the work.
  EXPECT_TRUE(FileExists(calibration + ".kinds.json"));
  const Json again = convert("again", target);
  EXPECT_EQ(again["widths"], chosen["widths"]);
  EXPECT_EQ(CheckError(RunProgram("convert --hf-path " + demo + " --mlx-path " + (folder / "low") +
                                  " --calibration " + calibration + " --target-bpw 2"),
                       1, {"at least 2.", "all matrices at 2 bits"}),
            "");
  EXPECT_FALSE(IsDirectory(folder / "low"));
}

}  // namespace
}  // namespace tq::test

// The bundled demo checkpoint: 200 greedy tokens of an independent forward pass, exactly; and its
// 3-bit conversion still gives most of them.
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "quantize/convert.h"
#include "support/checkpoint.h"

namespace tq::test {
namespace {

struct DemoCase {
  std::vector<int32_t> prompt;
  std::vector<int32_t> greedy;
};

std::vector<DemoCase> DemoCases() {
  const auto text = ReadTextFile(TQ_SOURCE_DIR "/tests/data/demo_greedy.json");
  TQ_CHECK(text.ok());
  const auto json = ParseJson(*text, "demo_greedy.json");
  TQ_CHECK(json.ok());
  std::vector<DemoCase> out;
  for (const Json& c : (*json)["cases"]) {
    out.push_back(
        {c["prompt_ids"].get<std::vector<int32_t>>(), c["greedy_ids"].get<std::vector<int32_t>>()});
  }
  return out;
}

TEST(Demo, TwoHundredGreedyTokensAreExact) {
  auto loaded = LoadOn(TQ_SOURCE_DIR "/demo", "",
                       {.num_threads = 2, .activations = ActivationMode::kF32, .isa = ""});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  size_t total = 0;
  for (const DemoCase& c : DemoCases()) {
    EXPECT_EQ(Greedy(*loaded, c.prompt, static_cast<int>(c.greedy.size()), {}), c.greedy);
    total += c.greedy.size();
  }
  EXPECT_EQ(total, 200u);
}

TEST(Demo, ThreeBitsStartTheSameAnswers) {
  const std::string out = testing::TempDir() + "tq_demo_tq3";
  std::filesystem::remove_all(out);
  auto source = OpenSource(TQ_SOURCE_DIR "/demo");
  ASSERT_TRUE(source.ok());
  ASSERT_TRUE(Convert(**source, out, {}).ok());
  auto loaded =
      LoadOn(out, "", {.num_threads = 2, .activations = ActivationMode::kInt8, .isa = ""});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  int same = 0;
  for (const DemoCase& c : DemoCases()) {
    const std::vector<int32_t> got = Greedy(*loaded, c.prompt, 4, {});
    same += std::equal(got.begin(), got.end(), c.greedy.begin()) ? 1 : 0;
  }
  EXPECT_GE(same, 3) << "of 5 answers";
  std::filesystem::remove_all(out);
}

}  // namespace
}  // namespace tq::test

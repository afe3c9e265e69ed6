#include "quantize/bit_allocation.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

BitCandidate Candidate(const std::string& path, int64_t weights) {
  return {path, weights, {weights * 2 / 8, weights * 3 / 8, weights * 4 / 8}};
}

std::vector<BitCandidate> Model(int layers = 4) {
  std::vector<BitCandidate> out;
  for (int layer = 0; layer < layers; ++layer) {
    const std::string path = "model.layers." + std::to_string(layer);
    out.push_back(Candidate(path + ".self_attn.v_proj", 1000));
    out.push_back(Candidate(path + ".mlp.up_proj", 8000));
  }
  return out;
}

const std::map<std::string, double> kDivergences = {{"self_attn.v_proj", 0.05},
                                                    {"mlp.up_proj", 0.06}};

int64_t Count(const BitPlan& plan, const std::string& name, int bits) {
  int64_t count = 0;
  for (const auto& [path, width] : plan.bits) {
    if (path.find(name) != std::string::npos && width == bits) ++count;
  }
  return count;
}

TEST(KindOfPath, LeavesOutWhatTellsMatricesOfAKindApart) {
  EXPECT_EQ(KindOfPath("model.layers.12.self_attn.v_proj"), "self_attn.v_proj");
  EXPECT_EQ(KindOfPath("language_model.model.layers.3.mlp.switch_mlp.down_proj"),
            "switch_mlp.down_proj");
  EXPECT_EQ(KindOfPath("model.layers.1.mlp.experts.17.up_proj"), "experts.up_proj");
  EXPECT_EQ(KindOfPath("lm_head"), "lm_head");
}

TEST(AllocateBits, RaisesWhatCostsMostPerByte) {
  const auto plan = AllocateBits(Model(), kDivergences, 2.5);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  // v_proj is worth 6.7 times as much per weight: it is at 4 bits before up_proj is at 3.
  EXPECT_EQ(Count(*plan, "v_proj", 4), 4);
  EXPECT_EQ(Count(*plan, "up_proj", 3), 1);
  EXPECT_EQ(plan->bits.at("model.layers.0.mlp.up_proj"), 3);  // of equals, the first
  EXPECT_LE(plan->bits_per_weight, 2.5);
  EXPECT_GT(plan->bits_per_weight, 2.4);
}

TEST(AllocateBits, BeatsUniformWidthsOfTheSameSize) {
  const double uniform = 0.05 + 0.06;  // all at 3 bits
  const auto fine = AllocateBits(Model(40), kDivergences, 3);
  ASSERT_TRUE(fine.ok());
  EXPECT_LE(fine->bits_per_weight, 3);
  EXPECT_LT(fine->divergence, 0.99 * uniform);
  const auto coarse = AllocateBits(Model(1), kDivergences, 3);
  ASSERT_TRUE(coarse.ok());
  EXPECT_NEAR(coarse->divergence, uniform, 1e-9);
}

TEST(AllocateBits, EndsAtTheHighestTier) {
  const auto plan = AllocateBits(Model(), kDivergences, 16);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Count(*plan, "", 4), 8);
  EXPECT_NEAR(plan->bits_per_weight, 4, 1e-9);
}

TEST(AllocateBits, SaysWhatIsMissing) {
  EXPECT_EQ(AllocateBits(Model(), kDivergences, 1.9).status().message(),
            "bits per weight: expected at least 2.000 (all matrices at 2 bits), found 1.9");
  EXPECT_EQ(AllocateBits(Model(), {{"mlp.up_proj", 1}}, 3).status().message(),
            "self_attn.v_proj: expected a measured divergence, found none");
}

}  // namespace
}  // namespace tq

#include "plan/streamed_experts.h"

#include <gtest/gtest.h>

namespace tq::test {
namespace {

constexpr int64_t kGb = 1'000'000'000;

// 10 GB of experts of which a token reads 1 GB, 2 GB of other weights, 1 GB beside weights.
const RecipeSize kSize = {.prepared_bytes = 12 * kGb,
                          .decode_bytes = 3 * kGb,
                          .expert_bytes = 10 * kGb,
                          .expert_decode_bytes = kGb};

TEST(StreamedExperts, ABudgetForAShareOfThemSavesThatShareOfTheReads) {
  // 8 GB: 5 for experts, half of them. 3 GB from memory at 30 GB/s, half a GB from the disk at 1.
  const StreamedExperts half = EstimateStreaming(
      kSize, kGb, {.memory_bytes = 8 * kGb, .bandwidth = 30e9, .disk_speed = 1e9});
  EXPECT_EQ(half.least_bytes, 5 * kGb);
  EXPECT_EQ(half.budget_bytes, 5 * kGb);
  EXPECT_NEAR(half.tokens_per_second, 1 / (0.1 + 0.5), 1e-9);
}

TEST(StreamedExperts, WithRoomForAllTheDiskDoesNotCount) {
  const StreamedExperts all = EstimateStreaming(
      kSize, kGb, {.memory_bytes = 50 * kGb, .bandwidth = 30e9, .disk_speed = 1e9});
  EXPECT_EQ(all.budget_bytes, kSize.expert_bytes);
  EXPECT_NEAR(all.tokens_per_second, 10.0, 1e-9);
}

TEST(StreamedExperts, NoSpeedIsToldWhereItWouldNotRunOrTheDiskIsNotKnown) {
  const StreamedExperts small = EstimateStreaming(
      kSize, kGb, {.memory_bytes = 4 * kGb, .bandwidth = 30e9, .disk_speed = 1e9});
  EXPECT_GT(small.least_bytes, 4 * kGb);
  EXPECT_EQ(small.tokens_per_second, 0);
  EXPECT_EQ(
      EstimateStreaming(kSize, kGb, {.memory_bytes = 8 * kGb, .bandwidth = 30e9}).tokens_per_second,
      0);
}

}  // namespace
}  // namespace tq::test

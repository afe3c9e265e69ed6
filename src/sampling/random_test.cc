#include "sampling/random.h"

#include <set>

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(Random, MatchesThePublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, UniformUsesAllOfSeedPositionAndStream) {
  std::set<double> values;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (const int64_t position : {int64_t{0}, int64_t{1}, int64_t{1} << 32}) {
      for (const RandomStream stream : {kDrawStream, kXtcStream}) {
        const double u = UniformAt(seed, position, stream);
        EXPECT_GE(u, 0.0);
        EXPECT_LT(u, 1.0);
        values.insert(u);
      }
    }
  }
  EXPECT_EQ(values.size(), 18u);
}

TEST(Random, SeedsOfAnswersDiffer) {
  EXPECT_EQ(SeedOfAnswer(42, 0), 42u);
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (int64_t index = 0; index < 100; ++index) seeds.insert(SeedOfAnswer(seed, index));
  }
  EXPECT_EQ(seeds.size(), 400u);
  EXPECT_EQ(SeedOfAnswer(3, 7), SeedOfAnswer(3, 7));
}

// SA-05 (c): without a seed two requests get different ones.
TEST(Random, FreshSeedsDiffer) { EXPECT_NE(FreshSeed(), FreshSeed()); }

}  // namespace
}  // namespace tq

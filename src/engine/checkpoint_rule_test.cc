#include "engine/checkpoint_rule.h"

#include <vector>

#include <gtest/gtest.h>

namespace tq {
namespace {

std::vector<int64_t> Positions(const CheckpointRule& rule, int64_t prompt_tokens, int64_t branch) {
  std::vector<int64_t> out;
  for (int64_t at = rule.Next(0, prompt_tokens, branch); at < prompt_tokens;
       at = rule.Next(at, prompt_tokens, branch)) {
    out.push_back(at);
  }
  return out;
}

TEST(CheckpointRule, RegularOnesTheTailAndTheBranch) {
  const CheckpointRule rule{.interval = 512, .max_count = 20};
  EXPECT_EQ(Positions(rule, 1400, 0), (std::vector<int64_t>{512, 1024, 1344}));
  EXPECT_EQ(Positions(rule, 1400, 640), (std::vector<int64_t>{512, 640, 1024, 1344}));
  EXPECT_EQ(Positions(rule, 1027, 0), (std::vector<int64_t>{512, 960, 1024}));
  EXPECT_EQ(Positions(rule, 71, 0), (std::vector<int64_t>{}));
  EXPECT_EQ(Positions(rule, 72, 0), (std::vector<int64_t>{64}));
}

TEST(CheckpointRule, ALongPromptTakesAtMostHalf) {
  const CheckpointRule rule{.interval = 64, .max_count = 8};
  EXPECT_EQ(Positions(rule, 1000, 0), (std::vector<int64_t>{256, 512, 768, 960}));
  EXPECT_EQ(Positions({.interval = 64, .max_count = 1}, 1000, 0), (std::vector<int64_t>{512, 960}));
}

TEST(CheckpointRule, NoneWithoutAnInterval) { EXPECT_TRUE(Positions({}, 100000, 640).empty()); }

}  // namespace
}  // namespace tq

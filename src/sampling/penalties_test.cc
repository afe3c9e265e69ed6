#include "sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "sampling/sampler_for_test.h"

namespace tq {
namespace {

// One sampler and one scratch memory for many calls.
class PenaltyTester {
 public:
  explicit PenaltyTester(SamplingParams params) : sampler_(std::move(params)) {}
  std::vector<float> After(const std::vector<int32_t>& history, std::vector<float> logits,
                           size_t prompt_tokens = 0) {
    SamplerCall call;
    call.history = history;
    call.prompt_tokens = prompt_tokens;
    sampler_.Sample(logits, call, scratch_);
    return logits;
  }

 private:
  Sampler sampler_;
  SamplerScratch scratch_;
};

TEST(Sampler, PenaltyDividesPositiveAndMultipliesNegative) {
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  // Id 0 appears twice and is penalized once; what one call marked is gone in the next.
  PenaltyTester tester(params);
  EXPECT_EQ(tester.After({0, 0, 1, 2}, {4, -1, 0, 3, 1}), (std::vector<float>{2, -2, 0, 3, 1}));
  EXPECT_EQ(tester.After({0, 4}, {4, -1, 0, 3, 1}), (std::vector<float>{2, -1, 0, 3, 0.5f}));
}

TEST(Sampler, PenaltySeesOnlyItsContext) {
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  params.repetition_context = 2;
  EXPECT_EQ(PenaltyTester(params).After({0, 1, 2}, {4, 4, 4}), (std::vector<float>{4, 2, 2}));
  params.repetition_context = 0;
  EXPECT_EQ(PenaltyTester(params).After({0, 1, 2}, {4, 4, 4}), (std::vector<float>{4, 4, 4}));
}

// SA-06
TEST(Sampler, SA06_PresenceAndFrequencyCountTheAnswerAlone) {
  SamplingParams params;
  params.presence_penalty = 0.5f;
  params.frequency_penalty = 0.25f;
  const std::vector<int32_t> history = {0, 1, 1, 2, 2, 2, 3};
  PenaltyTester tester(params);
  EXPECT_EQ(tester.After(history, {4, 4, 4, 4, 4}, 3), (std::vector<float>{4, 4, 2.75f, 3.25f, 4}));
  EXPECT_EQ(tester.After(history, {4, 4, 4, 4, 4}, 7), (std::vector<float>{4, 4, 4, 4, 4}));
  params.penalize_prompt = true;
  EXPECT_EQ(PenaltyTester(params).After(history, {4, 4, 4, 4, 4}, 3),
            (std::vector<float>{3.25f, 3, 2.75f, 3.25f, 4}));
  params.penalty_context = 2;
  EXPECT_EQ(PenaltyTester(params).After(history, {4, 4, 4, 4, 4}, 3),
            (std::vector<float>{4, 4, 3.25f, 3.25f, 4}));
}

// SA-06: a model that goes round in four tokens for ever is pushed out of them.
TEST(Sampler, SA06_AFrequencyPenaltyBreaksAShortLoop) {
  SamplingParams params;
  params.frequency_penalty = 1.5f;
  PenaltyTester tester(params);
  std::vector<int32_t> history = {0};
  for (int i = 0; i < 40; ++i) {
    std::vector<float> logits(8, 0.0f);
    logits[static_cast<size_t>((history.back() + 1) % 4)] = 6.0f;
    SamplerCall call;
    call.history = history;
    history.push_back(SampleOnce(params, logits, call));
  }
  EXPECT_TRUE(std::any_of(history.begin(), history.end(), [](int32_t id) { return id >= 4; }));
}

// SA-07
TEST(Sampler, SA07_NothingIsPenalizedByDefault) {
  const std::vector<int32_t> history(50, 2);
  EXPECT_EQ(PenaltyTester({}).After(history, {1, 2, 3}), (std::vector<float>{1, 2, 3}));
}

SamplingParams Dry() {
  SamplingParams params;
  params.dry_multiplier = 1.0f;
  params.dry_base = 2.0f;
  params.dry_allowed_length = 2;
  return params;
}

TEST(Dry, PenalizesWhatContinuesARepeat) {
  PenaltyTester tester(Dry());
  const std::vector<float> flat(10, 0.0f);
  const auto loss = [&](const std::vector<int32_t>& history, size_t id) {
    return -tester.After(history, flat)[id];
  };
  // "1 2" came before 3: a repeat of two.
  EXPECT_EQ(loss({1, 2, 3, 9, 1, 2}, 3), 1.0f);
  EXPECT_EQ(loss({1, 2, 3, 9, 1, 2}, 9), 0.0f);
  // Of three, and of four: base to the power of what is beyond two.
  EXPECT_EQ(loss({0, 1, 2, 3, 9, 0, 1, 2}, 3), 2.0f);
  EXPECT_EQ(loss({5, 0, 1, 2, 3, 9, 5, 0, 1, 2}, 3), 4.0f);
  // One token alone costs nothing.
  EXPECT_EQ(loss({2, 3, 9, 2}, 3), 0.0f);
  // The longest repeat counts; others after other continuations.
  EXPECT_EQ(loss({0, 1, 2, 3, 8, 1, 2, 4, 0, 1, 2}, 3), 2.0f);
  EXPECT_EQ(loss({0, 1, 2, 3, 8, 1, 2, 4, 0, 1, 2}, 4), 1.0f);
  // Overlapping: 1 1 1 1 was followed by 1.
  EXPECT_EQ(loss({1, 1, 1, 1, 1}, 1), 4.0f);
}

TEST(Dry, StopsAtBreakersAndAtItsContext) {
  const std::vector<float> flat(10, 0.0f);
  const std::vector<int32_t> history = {0, 1, 2, 3, 9, 0, 1, 2};
  SamplingParams params = Dry();
  params.dry_breakers = {{0}};
  EXPECT_EQ(PenaltyTester(params).After(history, flat)[3], -1.0f);
  params.dry_breakers = {{1}};
  EXPECT_EQ(PenaltyTester(params).After(history, flat)[3], 0.0f);
  params.dry_breakers = {{0, 1}};
  EXPECT_EQ(PenaltyTester(params).After(history, flat)[3], -1.0f);
  params.dry_breakers = {{1, 2}};
  EXPECT_EQ(PenaltyTester(params).After(history, flat)[3], 0.0f);
  params.dry_breakers = {{3}};  // the continuation itself
  EXPECT_EQ(PenaltyTester(params).After(history, flat)[3], 0.0f);
  params.dry_breakers = {};
  params.dry_context = 7;
  EXPECT_EQ(PenaltyTester(params).After(history, flat)[3], -1.0f);
  params.dry_context = 0;
  EXPECT_EQ(PenaltyTester(params).After(history, flat)[3], 0.0f);
}

TEST(Dry, IsWhatComparingEveryPlaceGives) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    std::vector<int32_t> history(1 + random() % 60);
    for (int32_t& id : history) id = static_cast<int32_t>(random() % 3);
    SamplingParams params = Dry();
    params.dry_allowed_length = static_cast<int>(1 + random() % 3);
    std::vector<float> expected(3, 0.0f);
    std::vector<int> longest(3, 0);
    for (size_t next = 1; next < history.size(); ++next) {
      size_t length = 0;
      while (length < next && history[next - 1 - length] == history[history.size() - 1 - length]) {
        ++length;
      }
      int& best = longest[static_cast<size_t>(history[next])];
      best = std::max(best, static_cast<int>(length));
    }
    for (size_t id = 0; id < 3; ++id) {
      const int beyond = longest[id] - params.dry_allowed_length;
      if (beyond >= 0) expected[id] = -static_cast<float>(std::pow(2.0, beyond));
    }
    const std::vector<float> found = PenaltyTester(params).After(history, {0, 0, 0});
    for (size_t id = 0; id < 3; ++id) EXPECT_FLOAT_EQ(found[id], expected[id]) << round;
  }
}

TEST(Dry, ALongRepeatDoesNotOverflow) {
  SamplingParams params = Dry();
  params.dry_base = 100.0f;
  const std::vector<int32_t> history(1000, 1);
  EXPECT_EQ(PenaltyTester(params).After(history, {5, 5})[1], -1e30f);
}

}  // namespace
}  // namespace tq

#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "sampling/sampler_for_test.h"

namespace tq {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What a call needs to outlive it.
struct Call {
  std::vector<int32_t> history = {};
  std::vector<int32_t> forbidden = {};
  int64_t position = 0;
  SamplerCall get() const {
    SamplerCall call;
    call.history = history;
    call.forbidden = forbidden;
    call.position = position;
    return call;
  }
};

int32_t SampleAfter(const Call& call, const SamplingParams& params, std::vector<float> logits) {
  return SampleOnce(params, std::move(logits), call.get());
}

TEST(Sampler, GreedyTakesTheLowestOfTheLargest) {
  EXPECT_EQ(SampleOnce({}, {1, 3, 3, 2}), 1);
  EXPECT_EQ(SampleOnce({}, {-5, -7, -5}), 0);
}

TEST(Sampler, OddLogitsNeverCrash) {
  SamplingParams all = Hot();
  all.top_k = 3;
  all.top_p = 0.9f;
  all.min_p = 0.1f;
  all.repetition_penalty = 1.5f;
  all.typical_p = 0.9f;
  all.xtc_probability = 1.0f;
  all.xtc_threshold = 0.1f;
  all.presence_penalty = 1.0f;
  all.dry_multiplier = 1.0f;
  for (const SamplingParams& params : {SamplingParams{}, Hot(), all}) {
    EXPECT_EQ(SampleAfter(Call{.history = {0, 1}}, params, {kNan, 2, kNan, -kInf}), 1);
    EXPECT_EQ(SampleOnce(params, {kNan, kNan, kNan}), 0);
    EXPECT_EQ(SampleAfter(Call{.forbidden = {0, 2}}, params, {-kInf, -kInf, kNan}), 1);
    EXPECT_EQ(SampleAfter(Call{.forbidden = {0, 1}}, params, {1, 2}), 0);
    EXPECT_EQ(SampleOnce(params, {0, kInf, 5}), 1);
    EXPECT_EQ(SampleOnce(params, {-3e38f, 3e38f, -kInf}), 1);
  }
}

TEST(Sampler, TinyTemperatureIsGreedy) {
  SamplingParams params = Hot();
  params.temperature = 1e-44f;
  EXPECT_EQ(Drawn(params, {1.0f, 1.001f, 0.5f}), (std::set<int32_t>{1}));
}

TEST(Sampler, BiasMovesAndForbids) {
  SamplingParams params;
  params.logit_bias = {{2, 10.0f}, {0, -10.0f}};
  EXPECT_EQ(SampleOnce(params, {5, 4, 0}), 2);
  EXPECT_EQ(SampleAfter(Call{.forbidden = {2}}, params, {5, 4, 0}), 1);
}

// SA-05
TEST(Sampler, SA05_DependsOnSeedAndPositionOnly) {
  const std::vector<float> logits(64, 0.0f);
  const SamplingParams params = Hot();
  std::vector<int32_t> forward(32);
  for (int i = 0; i < 32; ++i) {
    forward[static_cast<size_t>(i)] = SampleAfter(Call{.position = i}, params, logits);
  }
  for (int i = 31; i >= 0; --i) {
    EXPECT_EQ(SampleAfter(Call{.position = i}, params, logits), forward[static_cast<size_t>(i)]);
  }
  SamplingParams other = params;
  other.seed = params.seed + 1;
  int same = 0;
  for (int i = 0; i < 32; ++i) {
    same += SampleAfter(Call{.position = i}, other, logits) == forward[static_cast<size_t>(i)];
  }
  EXPECT_LT(same, 8);
}

// SA-03
TEST(Sampler, SA03_TemperatureZeroIsGreedyWhateverElseIsSet) {
  SamplingParams params;
  params.top_p = 0.5f;
  params.min_p = 1.0f;
  params.typical_p = 0.1f;
  params.xtc_probability = 1.0f;
  params.xtc_threshold = 0.0f;
  for (const float temperature : {0.0f, 1e-6f, 9e-6f}) {
    params.temperature = temperature;
    EXPECT_TRUE(params.Validate(4).ok());
    EXPECT_EQ(Drawn(params, {1, 3, 3, 2}, 50), (std::set<int32_t>{1}));
  }
}

// SA-04
TEST(Sampler, SA04_TemperatureOneSamples) {
  std::set<int32_t> ids;
  SamplingParams params;
  params.temperature = 1.0f;
  for (params.seed = 1; params.seed <= 20; ++params.seed) {
    ids.insert(SampleOnce(params, {0.1f, 0.2f, 0.0f, 0.1f}));
  }
  EXPECT_GE(ids.size(), 3u);
}

TEST(Sampler, TheMaskComesFirst) {
  const std::vector<uint32_t> mask = {0b10100, 0};
  std::vector<float> logits(40, 1.0f);
  logits[0] = 9;
  SamplerCall call;
  call.allowed = mask;
  EXPECT_EQ(SampleOnce({}, logits, call), 2);
  SamplingParams biased;
  biased.logit_bias = {{0, 100.0f}, {39, 100.0f}, {4, 1.0f}};
  EXPECT_EQ(SampleOnce(biased, logits, call), 4);
  SamplingParams hot = Hot();
  std::set<int32_t> ids;
  for (call.position = 0; call.position < 50; ++call.position) {
    ids.insert(SampleOnce(hot, logits, call));
  }
  EXPECT_EQ(ids, (std::set<int32_t>{2, 4}));
}

TEST(Sampler, AConstraintOutranksWhatIsForbidden) {
  const std::vector<uint32_t> mask = {0b100};
  const std::vector<int32_t> forbidden = {0, 2};
  SamplerCall call;
  call.allowed = mask;
  call.forbidden = forbidden;
  for (const SamplingParams& params : {SamplingParams{}, Hot()}) {
    EXPECT_EQ(SampleOnce(params, {1, 2, 3, 4}, call), 2);
  }
}

TEST(Sampler, BadWordsForbidTheirLastId) {
  SamplingParams params;
  params.bad_words = {{3}, {1, 2}, {0, 1, 4}};
  const std::vector<float> logits = {1, 2, 5, 9, 4};
  const auto after = [&](std::vector<int32_t> history) {
    SamplerCall call;
    call.history = history;
    return SampleOnce(params, logits, call);
  };
  EXPECT_EQ(after({}), 2);
  EXPECT_EQ(after({1}), 4);
  EXPECT_EQ(after({0, 1}), 1);
  EXPECT_EQ(after({1, 0}), 2);
}

// SA-01: our default is the temperature last; the other order can be asked for.
TEST(Sampler, SA01_TheTemperatureComesLastUnlessAskedForEarlier) {
  const std::vector<float> logits = {2.5f, 1.5f, 0.9f, -0.4f};
  SamplingParams params = Hot();
  params.temperature = 0.5f;
  params.top_p = 0.8f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1}));
  params.order = {SamplerStep::kTemperature, SamplerStep::kTopP};
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0}));
  params = Hot();
  params.temperature = 0.5f;
  params.min_p = 0.3f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1}));
  params.order = {SamplerStep::kTemperature, SamplerStep::kMinP};
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0}));
  params.order = {SamplerStep::kTemperature};  // min_p left out
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2, 3}));
}

TEST(Logprobs, AreOfTheModelItself) {
  SamplingParams params = Hot();
  params.top_k = 1;
  params.temperature = 3.0f;
  params.logit_bias = {{2, 50.0f}};
  params.repetition_penalty = 2.0f;
  const std::vector<float> logits = {1.0f, 2.0f, -1.0f, 2.0f, kNan, -kInf};
  const std::vector<int32_t> history = {0, 1};
  SamplerCall call;
  call.history = history;
  call.num_logprobs = 5;
  const SampledToken token = SampleToken(params, logits, call);
  EXPECT_EQ(token.id, 2);
  const double sum = std::log(std::exp(1.0) + 2 * std::exp(2.0) + std::exp(-1.0));
  EXPECT_NEAR(token.logprobs.logprob, -1.0 - sum, 1e-6);
  ASSERT_EQ(token.logprobs.num_top, 4);
  const std::vector<int32_t> ids = {1, 3, 0, 2};
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(token.logprobs.top[i].id, ids[i]);
    EXPECT_NEAR(token.logprobs.top[i].logprob, logits[static_cast<size_t>(ids[i])] - sum, 1e-6);
  }
  call.num_logprobs = 0;
  EXPECT_EQ(SampleToken(params, logits, call).logprobs.num_top, 0);
  EXPECT_EQ(SampleToken(params, logits, call).logprobs.logprob, token.logprobs.logprob);
  call.num_logprobs = 1;
  EXPECT_EQ(SampleToken({}, {kNan, kNan}, call).logprobs.logprob, TokenLogprobs::kLeast);
}

TEST(Logprobs, TheBestOfALargeVocabularyInOrder) {
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 7919 % 613);
  SamplerCall call;
  call.num_logprobs = 20;
  const TokenLogprobs found = SampleToken({}, logits, call).logprobs;
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  ASSERT_EQ(found.num_top, 20);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(found.top[i].id, ids[i]);
  EXPECT_EQ(found.top[0].logprob, found.logprob);
}

}  // namespace
}  // namespace tq

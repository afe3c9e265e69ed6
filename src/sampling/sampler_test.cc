#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "sampling/random.h"

namespace tq {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Call {
  std::vector<int32_t> history = {};
  std::vector<int32_t> forbidden = {};
  int64_t position = 0;
};

int32_t SampleOnce(const SamplingParams& params, std::vector<float> logits, const Call& call = {}) {
  Sampler sampler(params);
  return sampler.Sample(logits, call.history, call.forbidden, call.position);
}

// Counts of each id over `draws` positions.
std::map<int32_t, int> Histogram(const SamplingParams& params, const std::vector<float>& logits,
                                 int draws) {
  Sampler sampler(params);
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    std::vector<float> copy = logits;
    ++counts[sampler.Sample(copy, {}, {}, i)];
  }
  return counts;
}

std::set<int32_t> Drawn(const SamplingParams& params, const std::vector<float>& logits) {
  std::set<int32_t> ids;
  for (const auto& [id, count] : Histogram(params, logits, 3000)) ids.insert(id);
  return ids;
}

SamplingParams Hot() {
  SamplingParams params;
  params.temperature = 1.0f;
  params.seed = 7;
  return params;
}

TEST(Random, MatchesThePublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, UniformUsesAllOfSeedAndPosition) {
  std::set<double> values;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (const int64_t position : {int64_t{0}, int64_t{1}, int64_t{1} << 32}) {
      const double u = UniformAt(seed, position);
      EXPECT_GE(u, 0.0);
      EXPECT_LT(u, 1.0);
      values.insert(u);
    }
  }
  EXPECT_EQ(values.size(), 9u);
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
  for (const SamplingParams& params : {SamplingParams{}, Hot(), all}) {
    EXPECT_EQ(SampleOnce(params, {kNan, 2, kNan, -kInf}, {.history = {0, 1}}), 1);
    EXPECT_EQ(SampleOnce(params, {kNan, kNan, kNan}), 0);
    EXPECT_EQ(SampleOnce(params, {-kInf, -kInf, kNan}, {.forbidden = {0, 2}}), 1);
    EXPECT_EQ(SampleOnce(params, {1, 2}, {.forbidden = {0, 1}}), 0);
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
  EXPECT_EQ(SampleOnce(params, {5, 4, 0}, {.forbidden = {2}}), 1);
}

TEST(Sampler, PenaltyDividesPositiveAndMultipliesNegative) {
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  std::vector<float> logits = {4, -1, 0, 3, 1};
  Sampler sampler(params);
  // Id 0 appears twice and is penalized once.
  EXPECT_EQ(sampler.Sample(logits, std::vector<int32_t>{0, 0, 1, 2}, {}, 0), 3);
  EXPECT_EQ(logits, (std::vector<float>{2, -2, 0, 3, 1}));
  // The marks of the first call are gone.
  logits = {4, -1, 0, 3, 1};
  sampler.Sample(logits, std::vector<int32_t>{0, 4}, {}, 1);
  EXPECT_EQ(logits, (std::vector<float>{2, -1, 0, 3, 0.5f}));
}

TEST(Sampler, PenaltySeesOnlyItsContext) {
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  params.repetition_context = 2;
  std::vector<float> logits = {4, 4, 4};
  Sampler(params).Sample(logits, std::vector<int32_t>{0, 1, 2}, {}, 0);
  EXPECT_EQ(logits, (std::vector<float>{4, 2, 2}));
  params.repetition_context = 0;
  logits = {4, 4, 4};
  Sampler(params).Sample(logits, std::vector<int32_t>{0, 1, 2}, {}, 0);
  EXPECT_EQ(logits, (std::vector<float>{4, 4, 4}));
}

TEST(Sampler, TopKKeepsTheLowerIdsOfATie) {
  SamplingParams params = Hot();
  params.top_k = 2;
  EXPECT_EQ(Drawn(params, {1, 2, 2, 2, 0}), (std::set<int32_t>{1, 2}));
  params.top_k = 1;
  EXPECT_EQ(Drawn(params, {2, 2, 1}), (std::set<int32_t>{0}));
  params.top_k = 100;
  EXPECT_EQ(Drawn(params, {2, 2, 1}), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 0.5, 0.25, 0.25.
  const std::vector<float> logits = {0.0f, std::log(2.0f), 0.0f};
  SamplingParams params = Hot();
  params.top_p = 1e-30f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1}));
  params.top_p = 0.45f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1}));
  params.top_p = 0.7f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1}));  // a tie: the lower id first
  params.top_p = 0.8f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2}));
  params.top_p = 1.0f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TopPIsExactOverManyCandidates) {
  // Flat: exactly the first ids by the tie rule, beyond the first sorted piece.
  SamplingParams params = Hot();
  params.top_p = 0.5f;
  const std::vector<float> logits(1000, 1.0f);
  const std::set<int32_t> ids = Drawn(params, logits);
  EXPECT_LT(*ids.rbegin(), 500);
  EXPECT_GT(*ids.rbegin(), 450);
}

TEST(Sampler, TopPWorksOnTheKeptOfTopK) {
  // After top_k the shares are 2/3 and 1/3.
  SamplingParams params = Hot();
  params.top_k = 2;
  params.top_p = 0.6f;
  EXPECT_EQ(Drawn(params, {0.0f, std::log(2.0f), 0.0f}), (std::set<int32_t>{1}));
}

TEST(Sampler, MinPIsRelativeToTheLargest) {
  // Weights 1, 0.5, 0.25.
  const std::vector<float> logits = {std::log(0.25f), 0.0f, std::log(0.5f)};
  SamplingParams params = Hot();
  params.min_p = 0.2f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2}));
  params.min_p = 0.3f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1, 2}));
  params.min_p = 0.999f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1}));
}

TEST(Sampler, DistributionMatchesTheSoftmax) {
  const std::vector<float> logits = {0.3f, -1.2f, 2.0f, 0.0f, 1.1f, -0.4f, 0.9f, 1.7f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    for (const bool sort : {false, true}) {
      SamplingParams params = Hot();
      params.temperature = temperature;
      params.seed = 1234;
      params.top_p = sort ? 0.99999f : 1.0f;  // keeps all, through the sorted route
      constexpr int kDraws = 20000;
      const std::map<int32_t, int> counts = Histogram(params, logits, kDraws);
      double total = 0.0;
      for (const float logit : logits) total += std::exp(double{logit} / temperature);
      double chi_square = 0.0;
      for (size_t id = 0; id < logits.size(); ++id) {
        const double expected = kDraws * std::exp(double{logits[id]} / temperature) / total;
        const auto found = counts.find(static_cast<int32_t>(id));
        const double difference = (found == counts.end() ? 0 : found->second) - expected;
        chi_square += difference * difference / expected;
      }
      EXPECT_LT(chi_square, 24.3) << temperature;  // 7 degrees of freedom, p = 0.001
    }
  }
}

TEST(Sampler, DependsOnSeedAndPositionOnly) {
  const std::vector<float> logits(64, 0.0f);
  const SamplingParams params = Hot();
  Sampler sampler(params);
  std::vector<int32_t> forward(32);
  for (int i = 0; i < 32; ++i) {
    std::vector<float> copy = logits;
    forward[static_cast<size_t>(i)] = sampler.Sample(copy, {}, {}, i);
  }
  for (int i = 31; i >= 0; --i) {
    EXPECT_EQ(SampleOnce(params, logits, {.position = i}), forward[static_cast<size_t>(i)]);
  }
  SamplingParams other = params;
  other.seed = params.seed + 1;
  int same = 0;
  for (int i = 0; i < 32; ++i) {
    same += SampleOnce(other, logits, {.position = i}) == forward[static_cast<size_t>(i)];
  }
  EXPECT_LT(same, 8);
}

TEST(SamplingParams, ValidateNamesTheField) {
  EXPECT_TRUE(SamplingParams{}.Validate(10).ok());
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    const Status status = params.Validate(10);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(message([](auto& p) { p.top_p = 0.0f; }), "top_p: expected (0, 1] (1 is off), found 0");
  EXPECT_NE(message([](auto& p) { p.top_p = kNan; }).find("top_p"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.temperature = -1; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.temperature = kInf; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.top_k = -1; }).find("top_k"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.min_p = 1; }).find("min_p"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.repetition_penalty = 0; }).find("repetition_penalty"),
            std::string::npos);
  EXPECT_NE(message([](auto& p) { p.repetition_context = -1; }).find("repetition_context"),
            std::string::npos);
  EXPECT_EQ(message([](auto& p) {
              p.logit_bias = {{10, 1.0f}};
            }),
            "logit_bias: expected ids in [0, 10), found 10");
  EXPECT_NE(message([](auto& p) { p.logit_bias = {{3, kNan}}; }).find("id 3"), std::string::npos);
}

}  // namespace
}  // namespace tq

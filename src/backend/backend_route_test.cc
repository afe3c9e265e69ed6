// The router: every rule against double arithmetic, ties and groups by hand.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "backend/op_matrix.h"

namespace tq {
namespace {

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

// The same choice on every backend.
Choice Route(const RouterRule& rule, const std::vector<float>& logits,
             const std::vector<float>& bias = {}, const std::vector<float>& expert_scale = {}) {
  const int64_t tokens = static_cast<int64_t>(logits.size()) / rule.num_experts;
  const size_t size = static_cast<size_t>(tokens * rule.top_k);
  const std::vector<float> all = ExpectSameBits("route", [&](Backend& backend) {
    std::vector<int32_t> experts(size, -1);
    std::vector<float> result(size);
    backend.Route({rule, logits.data(), bias.empty() ? nullptr : bias.data(),
                   expert_scale.empty() ? nullptr : expert_scale.data(), experts.data(),
                   result.data(), tokens});
    result.insert(result.end(), experts.begin(), experts.end());
    return result;
  });
  Choice choice;
  choice.weights.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
  for (size_t i = size; i < all.size(); ++i) choice.experts.push_back(static_cast<int32_t>(all[i]));
  return choice;
}

// One token in double arithmetic, without groups.
void ExpectToken(const RouterRule& rule, const float* logits, const float* bias,
                 const float* expert_scale, const int32_t* experts, const float* weights) {
  const size_t count = static_cast<size_t>(rule.num_experts);
  std::vector<double> score(count);
  double total = 0;
  for (size_t e = 0; e < count; ++e) {
    double l = logits[e];
    if (rule.logit_cap > 0) l = rule.logit_cap * std::tanh(l / rule.logit_cap);
    if (rule.score == RouterScore::kSigmoid) l = 1 / (1 + std::exp(-l));
    if (rule.score == RouterScore::kSqrtSoftplus) l = std::sqrt(std::log1p(std::exp(l)));
    score[e] = l;
    total += std::exp(l);
  }
  if (rule.score == RouterScore::kSoftmax) {
    for (double& value : score) value = std::exp(value) / total;
  }
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const auto selection = [&](int32_t e) { return score[e] + (bias != nullptr ? bias[e] : 0.0f); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return selection(a) > selection(b); });
  std::vector<double> expected;
  for (int i = 0; i < rule.top_k; ++i) {
    ASSERT_EQ(experts[i], order[i]);
    expected.push_back(rule.score == RouterScore::kSoftmaxTopK ? std::exp(score[order[i]])
                                                               : score[order[i]]);
  }
  double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
  if (rule.score == RouterScore::kSoftmaxTopK) {
    for (double& value : expected) value /= sum;
    sum = 1;
  }
  for (int i = 0; i < rule.top_k; ++i) {
    double w = expected[i];
    if (rule.renormalize) w /= sum + rule.renormalize_eps;
    w *= rule.scale;
    if (expert_scale != nullptr) w *= expert_scale[order[i]];
    ASSERT_NEAR(weights[i], w, 2e-6 * (1 + std::fabs(w)));
  }
}

TEST(Route, EveryRule) {
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSoftmaxTopK,
                                  RouterScore::kSigmoid, RouterScore::kSqrtSoftplus}) {
    for (const bool rich : {false, true}) {
      for (const int num_experts : {8, 61, 256}) {
        constexpr int64_t kTokens = 20;
        RouterRule rule{.score = score, .num_experts = num_experts, .top_k = 6};
        if (rich) {
          rule.renormalize = true;
          rule.renormalize_eps = 1e-3f;
          rule.scale = 2.5f;
          rule.logit_cap = 4.0f;
        }
        const std::vector<float> logits = RandomFloats(kTokens * num_experts, 1);
        std::vector<float> bias = rich ? RandomFloats(num_experts, 2) : std::vector<float>();
        for (float& value : bias) value *= 0.1f;
        const std::vector<float> expert_scale =
            rich ? RandomFloats(num_experts, 3) : std::vector<float>();
        const Choice choice = Route(rule, logits, bias, expert_scale);
        for (int64_t t = 0; t < kTokens; ++t) {
          ExpectToken(rule, logits.data() + t * num_experts, rich ? bias.data() : nullptr,
                      rich ? expert_scale.data() : nullptr, choice.experts.data() + t * rule.top_k,
                      choice.weights.data() + t * rule.top_k);
        }
      }
    }
  }
}

TEST(Route, TiesGoToTheLowerIndex) {
  const RouterRule rule{.score = RouterScore::kSigmoid, .num_experts = 6, .top_k = 4};
  EXPECT_EQ(Route(rule, {1, 2, 1, 2, 0, 1}).experts, (std::vector<int32_t>{1, 3, 0, 2}));
}

TEST(Route, BiasSelectsButDoesNotWeigh) {
  const RouterRule rule{.score = RouterScore::kSigmoid, .num_experts = 3, .top_k = 2};
  const Choice choice = Route(rule, {0, 0, 0}, {0, 5, 1});
  EXPECT_EQ(choice.experts, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(choice.weights, (std::vector<float>{0.5f, 0.5f}));
}

TEST(Route, Groups) {
  // Groups of three; best: 9, 8, 7; sums of the two best: 9, 15, 14.
  const std::vector<float> logits = {9, 0, 0, 8, 7, 0, 7, 7, 6};
  RouterRule rule{.score = RouterScore::kSoftmaxTopK, .num_experts = 9, .top_k = 3};
  rule.num_groups = 3;
  rule.top_groups = 2;
  EXPECT_EQ(Route(rule, logits).experts, (std::vector<int32_t>{3, 4, 6}));
  rule.group_by_max = true;
  EXPECT_EQ(Route(rule, logits).experts, (std::vector<int32_t>{0, 3, 4}));
  rule.top_groups = 1;
  EXPECT_EQ(Route(rule, logits).experts, (std::vector<int32_t>{0, 1, 2}));
  // Equal groups: the lower ones.
  rule.top_groups = 2;
  EXPECT_EQ(Route(rule, {1, 1, 1, 1, 1, 1, 1, 1, 1}).experts, (std::vector<int32_t>{0, 1, 2}));
}

TEST(Route, AnyLogitsGiveDifferentExperts) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSoftmaxTopK,
                                  RouterScore::kSigmoid, RouterScore::kSqrtSoftplus}) {
    RouterRule rule{.score = score, .num_experts = 8, .top_k = 4};
    rule.num_groups = 4;
    rule.top_groups = 1;  // fewer experts than are asked for
    const std::vector<std::vector<float>> rows = {{nan, nan, nan, nan, nan, nan, nan, nan},
                                                  {-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf},
                                                  {nan, 1, -inf, 2, nan, nan, -1e30f, 1e30f}};
    for (const std::vector<float>& logits : rows) {
      const Choice choice = Route(rule, logits);
      const std::set<int32_t> distinct(choice.experts.begin(), choice.experts.end());
      EXPECT_EQ(distinct.size(), 4u);
      EXPECT_GE(*distinct.begin(), 0);
      EXPECT_LT(*distinct.rbegin(), 8);
    }
  }
}

}  // namespace
}  // namespace tq

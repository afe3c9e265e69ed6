#include "backend/route.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/math.h"

namespace tq {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Index of the largest value, the lowest one of equals.
size_t Best(std::span<const float> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// values[i] = Exp(values[i] - max) / sum, the sum in index order.
void Softmax(std::span<float> values) {
  const float max = values[Best(values)];
  float sum = 0.0f;
  for (float& value : values) {
    value = max == kMinusInfinity ? 1.0f : Exp(value - max);
    sum = sum + value;
  }
  for (float& value : values) value = value / sum;
}

void Score(const RouterRule& rule, const float* logits, std::span<float> scores) {
  for (size_t e = 0; e < scores.size(); ++e) {
    float logit = std::isnan(logits[e]) ? kMinusInfinity : logits[e];
    if (rule.logit_cap > 0.0f) logit = rule.logit_cap * Tanh(logit / rule.logit_cap);
    if (rule.score == RouterScore::kSigmoid) logit = Sigmoid(logit);
    if (rule.score == RouterScore::kSqrtSoftplus) logit = std::sqrt(Softplus(logit));
    scores[e] = logit;
  }
  if (rule.score == RouterScore::kSoftmax) Softmax(scores);
}

float GroupScore(const RouterRule& rule, std::span<const float> group) {
  const size_t best = Best(group);
  if (rule.group_by_max || group.size() == 1) return group[best];
  float second = kMinusInfinity;
  for (size_t e = 0; e < group.size(); ++e) {
    if (e != best) second = std::max(second, group[e]);
  }
  return group[best] + second;
}

// Leaves the selection scores of the best groups, the others become -inf. scores: [num_groups].
void KeepBestGroups(const RouterRule& rule, std::span<float> selection, float* scores) {
  const size_t size = selection.size() / static_cast<size_t>(rule.num_groups);
  const auto group = [&](int g) { return selection.subspan(static_cast<size_t>(g) * size, size); };
  // A group stays when fewer than top_groups others come before it.
  for (int g = 0; g < rule.num_groups; ++g) scores[g] = GroupScore(rule, group(g));
  for (int g = 0; g < rule.num_groups; ++g) {
    int before = 0;
    for (int other = 0; other < rule.num_groups; ++other) {
      before += scores[other] > scores[g] || (scores[other] == scores[g] && other < g) ? 1 : 0;
    }
    if (before >= rule.top_groups) std::ranges::fill(group(g), kMinusInfinity);
  }
}

}  // namespace

void RouteToken(const RouteArgs& args, int64_t token, float* work) {
  const RouterRule& rule = args.rule;
  const size_t num_experts = static_cast<size_t>(rule.num_experts);
  const std::span<float> scores(work, num_experts);
  const std::span<float> selection(work + num_experts, num_experts);
  int32_t* experts = args.experts + token * rule.top_k;
  const std::span<float> weights(args.weights + token * rule.top_k,
                                 static_cast<size_t>(rule.top_k));

  Score(rule, args.logits + token * rule.num_experts, scores);
  for (size_t e = 0; e < num_experts; ++e) {
    const float value = args.selection_bias ? scores[e] + args.selection_bias[e] : scores[e];
    selection[e] = std::isnan(value) ? kMinusInfinity : value;
  }
  if (rule.num_groups > 1) KeepBestGroups(rule, selection, work + 2 * num_experts);

  const auto taken = [&](size_t expert, size_t i) {
    return std::find(experts, experts + i, static_cast<int32_t>(expert)) != experts + i;
  };
  for (size_t i = 0; i < weights.size(); ++i) {
    size_t best = num_experts;
    for (size_t e = 0; e < num_experts; ++e) {
      if (best != num_experts && selection[e] <= selection[best]) continue;
      if (!taken(e, i)) best = e;
    }
    experts[i] = static_cast<int32_t>(best);
    weights[i] = scores[best];
  }

  if (rule.score == RouterScore::kSoftmaxTopK) Softmax(weights);
  if (rule.renormalize) {
    float sum = 0.0f;
    for (const float weight : weights) sum = sum + weight;
    for (float& weight : weights) weight = weight / (sum + rule.renormalize_eps);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = weights[i] * rule.scale;
    if (args.expert_scale != nullptr) weights[i] = weights[i] * args.expert_scale[experts[i]];
  }
}

}  // namespace tq

// Ops of mixture-of-experts layers. Same conventions as backend/ops.h.
#pragma once

#include <cstdint>

namespace tq {

enum class RouterScore : uint8_t {
  kSoftmax,      // over all experts
  kSoftmaxTopK,  // of the chosen logits only; the selection is by logit
  kSigmoid,
  kSqrtSoftplus,  // sqrt(softplus(l))
};

// How a router picks experts (docs/models.md "routers").
struct RouterRule {
  RouterScore score = RouterScore::kSoftmax;
  int num_experts = 0;
  int top_k = 0;
  int num_groups = 1;  // > 1: only experts of the best `top_groups` groups can be chosen
  int top_groups = 1;
  bool group_by_max = false;  // a group's score: its best expert, else the sum of its two best
  bool renormalize = false;   // weights /= sum + renormalize_eps
  float renormalize_eps = 0.0f;
  float scale = 1.0f;      // multiplies the weights last
  float logit_cap = 0.0f;  // > 0: cap * tanh(l / cap) first
};

// For every token: experts[t, i] and weights[t, i], i < top_k, in falling order of selection score
// (equal scores: the lower index first). Selection score = score + selection_bias; weights are made
// from the scores alone, then multiplied by expert_scale[expert] when given.
struct RouteArgs {
  RouterRule rule;
  const float* logits;                    // [T, E]
  const float* selection_bias = nullptr;  // [E]
  const float* expert_scale = nullptr;    // [E]
  int32_t* experts;                       // [T, k]
  float* weights;                         // [T, k]
  int64_t num_tokens;
};

// out[t] = sum over i of weights[t, i] * y[rows[t, i]], added in the order of i, from +0.
struct MoeCombineArgs {
  const float* y;        // [*, n]
  const int32_t* rows;   // [T, k]
  const float* weights;  // [T, k]
  float* out;            // [T, n]
  int64_t num_tokens;
  int top_k;
  int64_t n;
};

}  // namespace tq

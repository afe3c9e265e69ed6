// The router of a mixture-of-experts layer. Scalar and small beside the experts, so that every
// backend on this machine shares it.
#pragma once

#include <cstdint>

#include "backend/ops_moe.h"

namespace tq {

// Floats that RouteToken needs as `work`.
inline int64_t RouteWork(const RouterRule& rule) {
  return int64_t{2} * rule.num_experts + rule.num_groups;
}

// One token's choice. Always top_k different experts of [0, num_experts), whatever the logits are
// (NaN counts as -inf).
void RouteToken(const RouteArgs& args, int64_t token, float* work);

}  // namespace tq

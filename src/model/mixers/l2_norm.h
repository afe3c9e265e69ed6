// x * scale / sqrt(sum of x^2 + 1e-6), as an RMS norm with a constant weight: the same value, since
// sum + 1e-6 = n (mean + 1e-6 / n).
#pragma once

#include <cmath>
#include <vector>

#include "model/step_context.h"

namespace tq {

inline constexpr double kL2Epsilon = 1e-6;

// The weight of that norm, for rows of n values.
inline std::vector<float> L2NormScale(int n, double scale) {
  const double root = std::sqrt(static_cast<double>(n));
  return std::vector<float>(static_cast<size_t>(n), static_cast<float>(scale / root));
}

// In place.
inline void ApplyL2Norm(StepContext& step, const std::vector<float>& weight, float* x,
                        int64_t num_rows) {
  const auto n = static_cast<int64_t>(weight.size());
  step.backend.RmsNorm({.x = x,
                        .w = weight.data(),
                        .eps = static_cast<float>(kL2Epsilon / static_cast<double>(n)),
                        .out = x,
                        .num_rows = num_rows,
                        .n = n});
}

}  // namespace tq

#include "quantize/scale_refit.h"

#include <cmath>

#include "tensor/half.h"

namespace tq {
namespace {

// Added to the diagonal, relative to it: keeps the factor of a singular system real.
constexpr double kRidge = 1e-6;

void AddProducts(const float* a, const float* b, int64_t columns, int64_t lanes, float* sums) {
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      sums[lane] += a[i * lanes + lane] * b[i * lanes + lane];
  }
}

}  // namespace

ScaleSystem::ScaleSystem(int64_t groups, int64_t lanes)
    : groups_(groups),
      lanes_(lanes),
      coefficients_(static_cast<size_t>(groups * groups * lanes)),
      targets_(static_cast<size_t>(groups * lanes)) {}

void ScaleSystem::AddCoefficient(int64_t g, int64_t h, const float* units, const float* products,
                                 int64_t columns) {
  AddProducts(units, products, columns, lanes_,
              &coefficients_[static_cast<size_t>((g * groups_ + h) * lanes_)]);
}

void ScaleSystem::AddTarget(int64_t g, const float* units, const float* gradient, int64_t columns) {
  AddProducts(units, gradient, columns, lanes_, &targets_[static_cast<size_t>(g * lanes_)]);
}

bool ScaleSystem::SolveLane(int64_t lane, std::vector<double>& lower,
                            std::vector<double>& x) const {
  const auto at = [&](int64_t g, int64_t h) -> double& {
    return lower[static_cast<size_t>(g * groups_ + h)];
  };
  for (int64_t g = 0; g < groups_; ++g) {
    for (int64_t h = 0; h <= g; ++h) {
      double sum = coefficients_[static_cast<size_t>((g * groups_ + h) * lanes_ + lane)];
      if (g == h) sum *= 1 + kRidge;
      for (int64_t k = 0; k < h; ++k) sum -= at(g, k) * at(h, k);
      if (g == h && !(sum > 0)) return false;
      at(g, h) = g == h ? std::sqrt(sum) : sum / at(h, h);
    }
  }
  for (int64_t g = 0; g < groups_; ++g) {
    double sum = targets_[static_cast<size_t>(g * lanes_ + lane)];
    for (int64_t k = 0; k < g; ++k) sum -= at(g, k) * x[static_cast<size_t>(k)];
    x[static_cast<size_t>(g)] = sum / at(g, g);
  }
  for (int64_t g = groups_ - 1; g >= 0; --g) {
    double sum = x[static_cast<size_t>(g)];
    for (int64_t k = g + 1; k < groups_; ++k) sum -= at(k, g) * x[static_cast<size_t>(k)];
    x[static_cast<size_t>(g)] = sum / at(g, g);
  }
  return true;
}

void ScaleSystem::Solve(std::vector<float>& scales) {
  std::vector<double> lower(static_cast<size_t>(groups_ * groups_));
  std::vector<double> x(static_cast<size_t>(groups_));
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (!SolveLane(lane, lower, x)) continue;
    for (int64_t g = 0; g < groups_; ++g) {
      float& scale = scales[static_cast<size_t>(g * lanes_ + lane)];
      const double moved = scale + x[static_cast<size_t>(g)];
      const float rounded = F16ToF32(F32ToF16(static_cast<float>(moved)));
      if (moved > 0.5 * scale && moved < 2.0 * scale && std::isfinite(rounded)) scale = rounded;
    }
  }
}

}  // namespace tq

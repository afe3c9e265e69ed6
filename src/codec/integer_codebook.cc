#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "codec/gaussian.h"
#include "codec/turbo_quant.h"

namespace tq {
namespace {

constexpr int kMaxInteger =
    63;                       // unsigned tables 0..126 cannot saturate a pair of u8 x i8 products
constexpr int kOffsets = 21;  // the largest entry is tried at L - 0.5 .. L + 0.5 steps
constexpr double kMinWeight = 1e-12;

// Probability of each cell; cells meet half-way between neighbouring entries.
std::array<double, 16> CellWeights(std::span<const float> codebook) {
  std::array<double, 16> weights{};
  double below = 0.0;
  for (size_t i = 0; i < codebook.size(); ++i) {
    const bool last = i + 1 == codebook.size();
    const double upto = last ? 1.0 : GaussianCdf(0.5 * (double{codebook[i]} + codebook[i + 1]));
    weights[i] = std::max(upto - below, kMinWeight);
    below = upto;
  }
  return weights;
}

struct Fit {
  std::array<int8_t, 16> integers{};
  double step = 0.0;
  double error = 0.0;
};

// The integers nearest to codebook / trial_step, and the least-squares step for them.
Fit FitAtStep(std::span<const float> codebook, const std::array<double, 16>& weights,
              double trial_step) {
  Fit fit;
  double cross = 0.0, square = 0.0;
  for (size_t i = 0; i < codebook.size(); ++i) {
    const double rounded = std::round(codebook[i] / trial_step);
    const double integer = std::clamp(rounded, -double{kMaxInteger}, double{kMaxInteger});
    fit.integers[i] = static_cast<int8_t>(integer);
    cross += weights[i] * integer * codebook[i];
    square += weights[i] * integer * integer;
  }
  fit.step = square > 0.0 ? cross / square : 0.0;
  for (size_t i = 0; i < codebook.size(); ++i) {
    const double difference = codebook[i] - fit.step * fit.integers[i];
    fit.error += weights[i] * difference * difference;
  }
  return fit;
}

}  // namespace

IntegerCodebook FitIntegerCodebook(std::span<const float> codebook) {
  IntegerCodebook result;
  TQ_CHECK(!codebook.empty() && codebook.size() <= result.integers.size());
  result.entries = static_cast<int>(codebook.size());
  double largest = 0.0;
  for (const float entry : codebook) {
    if (!std::isfinite(entry)) return result;
    largest = std::max(largest, std::fabs(double{entry}));
  }
  if (largest == 0.0) return result;

  const std::array<double, 16> weights = CellWeights(codebook);
  double energy = 0.0;
  for (size_t i = 0; i < codebook.size(); ++i) {
    energy += weights[i] * codebook[i] * codebook[i];
  }
  Fit best;
  best.error = energy;  // all integers 0
  for (int limit = 1; limit <= kMaxInteger; ++limit) {
    for (int k = 0; k < kOffsets; ++k) {
      const double steps = limit + (k - kOffsets / 2) / static_cast<double>(kOffsets - 1);
      const Fit fit = FitAtStep(codebook, weights, largest / steps);
      // Exact fits differ in rounding only: the smallest integers win.
      if (fit.error < best.error - 1e-14 * energy) best = fit;
    }
  }
  result.integers = best.integers;
  result.step = static_cast<float>(best.step);
  return result;
}

}  // namespace tq

// The standard normal distribution in f64, from our own exponential: same bits on every machine.
#pragma once

#include <cmath>

#include "base/math.h"

namespace tq {

inline double GaussianPdf(double x) { return 0.3989422804014327 * ExpF64(-0.5 * x * x); }

// Absolute error below 1e-14. Series 1/2 + pdf(x) (x + x^3/3 + x^5/(3*5) + ...): all terms of one
// sign.
inline double GaussianCdf(double x) {
  if (x < -8.0) return 0.0;  // below 1e-15
  if (x > 8.0) return 1.0;
  double term = x;
  double sum = x;
  for (int k = 3; std::fabs(term) > 1e-18 * std::fabs(sum); k += 2) {
    term *= x * x / k;
    sum += term;
  }
  return 0.5 + sum * GaussianPdf(x);
}

}  // namespace tq

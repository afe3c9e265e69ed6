#include "base/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tq {
namespace {

TEST(Exp, WithinTwoUlp) {
  for (double x = -87.0; x < 88.0; x += 0.0137) {
    const auto xf = static_cast<float>(x);
    const double want = std::exp(static_cast<double>(xf));
    EXPECT_NEAR(Exp(xf) / want, 1.0, 2.4e-7) << x;
  }
}

TEST(Exp, Edges) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(Exp(-1000.0f), 0.0f);
  EXPECT_TRUE(std::isfinite(Exp(std::numeric_limits<float>::infinity())));
}

TEST(Activations, MatchTheirFormulas) {
  for (double x = -12.0; x < 12.0; x += 0.01) {
    const auto f = static_cast<float>(x);
    const auto d = static_cast<double>(f);
    EXPECT_NEAR(Silu(f), d / (1 + std::exp(-d)), 2e-6) << x;
    EXPECT_NEAR(Tanh(f), std::tanh(d), 3e-7) << x;
    const double u = 0.7978845608028654 * (d + 0.044715 * d * d * d);
    EXPECT_NEAR(GeluTanh(f), 0.5 * d * (1 + std::tanh(u)), 3e-6) << x;
  }
}

TEST(Softplus, WithinTwoUlp) {
  for (double x = -86.0; x < 100.0; x += 0.0113) {
    const auto xf = static_cast<float>(x);
    const double want = std::log1p(std::exp(static_cast<double>(xf)));
    EXPECT_NEAR(Softplus(xf) / want, 1.0, 2.4e-7) << x;
  }
  for (double y = 0.0; y <= 1.0; y += 0.0007) {
    const auto yf = static_cast<float>(y);
    EXPECT_NEAR(Log1pUnit(yf), std::log1p(static_cast<double>(yf)), 2.4e-7 * y) << y;
  }
  EXPECT_EQ(Softplus(-200.0f), 0.0f);
  EXPECT_EQ(Softplus(200.0f), 200.0f);
  EXPECT_EQ(Softplus(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
}

TEST(MathF64, AgreesWithTheLibrary) {
  for (double x = 0.001; x < 40.0; x *= 1.07) {
    EXPECT_NEAR(ExpF64(x) / std::exp(x), 1.0, 1e-14);
    EXPECT_NEAR(ExpF64(-x) / std::exp(-x), 1.0, 1e-14);
    EXPECT_NEAR(LogF64(x), std::log(x), 1e-15 * (1 + std::fabs(std::log(x))));
    EXPECT_NEAR(PowF64(500000.0, -x / 41) / std::pow(500000.0, -x / 41), 1.0, 1e-14);
  }
  for (double x = -200000.0; x < 200000.0; x += 37.7) {
    double s = 0;
    double c = 0;
    SinCosF64(x, &s, &c);
    EXPECT_NEAR(s, std::sin(x), 1e-13);
    EXPECT_NEAR(c, std::cos(x), 1e-13);
  }
}

}  // namespace
}  // namespace tq

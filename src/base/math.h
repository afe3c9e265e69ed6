// Own elementary functions: the C library's results vary between versions and machines. The f32 ones
// are the definition that every vector kernel repeats operation by operation (docs/numerics.md).
// Requires: correctly rounded fma (std::fma), round to nearest, denormals on.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tq {

// Constants of Exp, shared with the vector forms.
struct ExpConstants {
  static constexpr float kLog2E = 1.44269504f;
  static constexpr float kLn2Hi = 0.693145752f;        // 13 trailing zero bits: n * hi is exact
  static constexpr float kLn2Lo = 1.42860677e-6f;
  static constexpr float kMax = 88.37626f;             // larger arguments are clamped (exp ~ 2.4e38)
  static constexpr float kMin = -87.33654f;            // smaller ones give 0 (no denormal results)
  static constexpr float kC5 = 1.98756912e-4f, kC4 = 1.39819994e-3f, kC3 = 8.33345205e-3f,
                         kC2 = 4.16657962e-2f, kC1 = 1.66666657e-1f, kC0 = 5.0e-1f;
};

// exp(x), about 1 ulp. x < kMin (also -inf) -> +0, x > kMax -> exp(kMax). x is not NaN.
inline float Exp(float x) {
  using C = ExpConstants;
  if (x < C::kMin) return 0.0f;
  if (x > C::kMax) x = C::kMax;
  const float n = std::nearbyint(x * C::kLog2E);
  float r = std::fma(-n, C::kLn2Hi, x);
  r = std::fma(-n, C::kLn2Lo, r);
  float p = C::kC5;
  p = std::fma(p, r, C::kC4);
  p = std::fma(p, r, C::kC3);
  p = std::fma(p, r, C::kC2);
  p = std::fma(p, r, C::kC1);
  p = std::fma(p, r, C::kC0);
  p = std::fma(p, r * r, r);
  p = p + 1.0f;
  const uint32_t scale = static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23;
  return p * std::bit_cast<float>(scale);
}

inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }
inline float Silu(float x) { return x * Sigmoid(x); }
inline float Tanh(float x) { return 1.0f - 2.0f / (Exp(2.0f * x) + 1.0f); }
inline float GeluTanh(float x) {
  const float u = 0.7978845608f * std::fma(0.044715f * x * x, x, x);
  return (0.5f * x) * (1.0f + Tanh(u));
}

// log1p(y) for y in 0..1, below 2 ulp: 2 atanh(s) with s = y / (2 + y), as a series in s^2 <= 1/9.
struct Log1pConstants {
  static constexpr float kC6 = 1.0f / 15.0f, kC5 = 1.0f / 13.0f, kC4 = 1.0f / 11.0f,
                         kC3 = 1.0f / 9.0f, kC2 = 1.0f / 7.0f, kC1 = 1.0f / 5.0f, kC0 = 1.0f / 3.0f;
};
inline float Log1pUnit(float y) {
  using C = Log1pConstants;
  const float s = y / (2.0f + y);
  const float z = s * s;
  const float twice = 2.0f * s;
  float p = C::kC6;
  p = std::fma(p, z, C::kC5);
  p = std::fma(p, z, C::kC4);
  p = std::fma(p, z, C::kC3);
  p = std::fma(p, z, C::kC2);
  p = std::fma(p, z, C::kC1);
  p = std::fma(p, z, C::kC0);
  return std::fma(twice * z, p, twice);
}

// The larger of x and +0; +0 for -0.
inline float Relu(float x) { return x > 0.0f ? x : 0.0f; }
inline float Softplus(float x) { return Relu(x) + Log1pUnit(Exp(-std::fabs(x))); }

// f64 functions for tables made once per load or step (rope). Error below 1e-14 relative.
double ExpF64(double x);
double LogF64(double x);                       // x > 0
double PowF64(double base, double exponent);   // base > 0
void SinCosF64(double x, double* sine, double* cosine);  // |x| < 2^30

}  // namespace tq

#include "base/math.h"

namespace tq {
namespace {

constexpr double kLn2Hi = 6.93147180369123816490e-01;  // 32 significant bits
constexpr double kLn2Lo = 1.90821492927058770002e-10;

// pi / 2 in three pieces of 33 bits and a tail: n * piece is exact for |n| < 2^20.
constexpr double kPio2A = 1.57079632673412561417e+00;
constexpr double kPio2B = 6.07710050630396597660e-11;
constexpr double kPio2C = 2.02226624871116645580e-21;
constexpr double kPio2D = 8.47842766036889956997e-32;

// Taylor series on |r| <= pi / 4: the first omitted term is below 2e-17.
// Also part of functions for processors with fma: std::fma is one instruction there, and a call
// with the same result elsewhere.
#define TQ_INLINE inline __attribute__((always_inline))

TQ_INLINE double SinPoly(double r) {
  const double z = r * r;
  double p = -1.0 / 121645100408832000.0;  // 19!
  p = std::fma(p, z, 1.0 / 355687428096000.0);
  p = std::fma(p, z, -1.0 / 1307674368000.0);
  p = std::fma(p, z, 1.0 / 6227020800.0);
  p = std::fma(p, z, -1.0 / 39916800.0);
  p = std::fma(p, z, 1.0 / 362880.0);
  p = std::fma(p, z, -1.0 / 5040.0);
  p = std::fma(p, z, 1.0 / 120.0);
  p = std::fma(p, z, -1.0 / 6.0);
  return std::fma(r * z, p, r);
}

TQ_INLINE double CosPoly(double r) {
  const double z = r * r;
  double p = 1.0 / 2432902008176640000.0;  // 20!
  p = std::fma(p, z, -1.0 / 6402373705728000.0);
  p = std::fma(p, z, 1.0 / 20922789888000.0);
  p = std::fma(p, z, -1.0 / 87178291200.0);
  p = std::fma(p, z, 1.0 / 479001600.0);
  p = std::fma(p, z, -1.0 / 3628800.0);
  p = std::fma(p, z, 1.0 / 40320.0);
  p = std::fma(p, z, -1.0 / 720.0);
  p = std::fma(p, z, 1.0 / 24.0);
  p = std::fma(p, z, -0.5);
  return std::fma(z, p, 1.0);
}

TQ_INLINE void SinCos(double x, double* sine, double* cosine) {
  const double n = std::nearbyint(x * 0.63661977236758138);  // 2 / pi
  double r = std::fma(-n, kPio2A, x);
  r = std::fma(-n, kPio2B, r);
  r = std::fma(-n, kPio2C, r);
  r = std::fma(-n, kPio2D, r);
  const double s = SinPoly(r);
  const double c = CosPoly(r);
  switch (static_cast<int64_t>(n) & 3) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s; break;
  }
}

#undef TQ_INLINE

#if defined(__x86_64__)
__attribute__((target("fma"))) void SinCosFma(double x, double* sine, double* cosine) {
  SinCos(x, sine, cosine);
}
const bool kHasFma = __builtin_cpu_supports("fma") != 0;
#endif

}  // namespace

double ExpF64(double x) {
  if (x < -708.0) return 0.0;
  if (x > 709.0) x = 709.0;
  const double n = std::nearbyint(x * 1.4426950408889634);
  const double r = std::fma(-n, kLn2Lo, std::fma(-n, kLn2Hi, x));
  double p = 1.0;  // 1 + r/1 (1 + r/2 (1 + ...)), |r| <= 0.35: 16 terms reach 2e-18
  for (int i = 16; i >= 1; --i) p = std::fma(r / i, p, 1.0);
  const uint64_t scale = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52;
  return p * std::bit_cast<double>(scale);
}

double LogF64(double x) {
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t e = static_cast<int64_t>(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
  double m = std::bit_cast<double>(bits);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++e;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;  // |s| <= 0.172: z^12 / 25 is below 1e-19
  double p = 0.0;
  for (int i = 25; i >= 3; i -= 2) p = std::fma(p, z, 1.0 / i);
  const double log_m = 2.0 * std::fma(s * z, p, s);
  const double n = static_cast<double>(e);
  return std::fma(n, kLn2Hi, std::fma(n, kLn2Lo, log_m));
}

double PowF64(double base, double exponent) { return ExpF64(exponent * LogF64(base)); }

void SinCosF64(double x, double* sine, double* cosine) {
#if defined(__x86_64__)
  if (kHasFma) return SinCosFma(x, sine, cosine);
#endif
  SinCos(x, sine, cosine);
}

}  // namespace tq

#include "sampling/weights.h"

#include <bit>
#include <cmath>
#include <cstddef>

#include "base/math.h"

namespace tq {
namespace {

// Adding it leaves the nearest integer in the low bits of a double below 2^52.
constexpr double kRoundUnsigned = 0x1.0p52;
constexpr double kRoundSigned = 0x1.8p52;
// The same for a float below 2^22.
constexpr float kRoundFloat = 0x1.8p23f;

// Exp of base/math.h for x <= 0 without branches, so that compilers make vectors of it.
[[gnu::always_inline]] inline float ExpBelow(float x) {
  using C = ExpConstants;
  const float bounded = x < C::kMin ? C::kMin : x;
  const float n = (bounded * C::kLog2E + kRoundFloat) - kRoundFloat;
  float r = std::fma(-n, C::kLn2Hi, bounded);
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
  const float value = p * std::bit_cast<float>(scale);
  return x < C::kMin ? 0.0f : value;
}

[[gnu::always_inline]] inline uint64_t Fill(std::span<const float> logits, WeightScale scale,
                                            uint64_t* __restrict weights) {
  const float* __restrict x = logits.data();
  const size_t count = logits.size();
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const float weight = ExpBelow((x[i] - scale.largest) / scale.temperature);
    const double rounded = static_cast<double>(weight) * 0x1.0p42 + kRoundUnsigned;
    weights[i] = std::bit_cast<uint64_t>(rounded) - std::bit_cast<uint64_t>(kRoundUnsigned);
    total += weights[i];
  }
  return total;
}

[[gnu::always_inline]] inline int64_t SumOffsets(std::span<const float> logits, WeightScale scale,
                                                 const uint64_t* __restrict weights) {
  const float* __restrict x = logits.data();
  const size_t count = logits.size();
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const float offset = (x[i] - scale.largest) / scale.temperature;
    const double weight =
        std::bit_cast<double>(weights[i] | std::bit_cast<uint64_t>(kRoundUnsigned)) -
        kRoundUnsigned;
    // An offset of -inf has no weight.
    const double product = weight == 0 ? 0.0 : weight * static_cast<double>(offset);
    sum += std::bit_cast<int64_t>(product + kRoundSigned) - std::bit_cast<int64_t>(kRoundSigned);
  }
  return sum;
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] uint64_t FillAvx2(std::span<const float> logits, WeightScale scale,
                                              uint64_t* weights) {
  return Fill(logits, scale, weights);
}
[[gnu::target("avx2,fma")]] int64_t SumOffsetsAvx2(std::span<const float> logits, WeightScale scale,
                                                   const uint64_t* weights) {
  return SumOffsets(logits, scale, weights);
}
bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

}  // namespace

uint64_t ComputeWeights(std::span<const float> logits, WeightScale scale,
                        std::span<uint64_t> weights) {
#if defined(__x86_64__)
  if (HasAvx2()) return FillAvx2(logits, scale, weights.data());
#endif
  return Fill(logits, scale, weights.data());
}

float MeanOffset(std::span<const float> logits, WeightScale scale,
                 std::span<const uint64_t> weights, uint64_t total) {
#if defined(__x86_64__)
  if (HasAvx2()) {
    const int64_t sum = SumOffsetsAvx2(logits, scale, weights.data());
    return static_cast<float>(static_cast<double>(sum) / static_cast<double>(total));
  }
#endif
  const int64_t sum = SumOffsets(logits, scale, weights.data());
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(total));
}

}  // namespace tq

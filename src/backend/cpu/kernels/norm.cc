// RmsNorm of one row: the sum of squares over 256 virtual lanes and one fixed tree.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/norm.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kWidth = 256;
constexpr int kAccumulators = 8;

// lanes[j] = chain of fma(x, x, lane) over x[j], x[j + 256], ...: a slice of the lanes at a time.
HWY_INLINE void SquareLanes(const float* x, int64_t n, float* lanes) {
  const VecTag d;
  constexpr int64_t kSlice = int64_t{kAccumulators} * kLanes;
  for (int64_t slice = 0; slice < kWidth; slice += kSlice) {
    Vec acc[kAccumulators];
    TQ_UNROLL
    for (int a = 0; a < kAccumulators; ++a) acc[a] = hn::Zero(d);
    int64_t i = slice;
    for (; i + kSlice <= n; i += kWidth) {
      TQ_UNROLL
      for (int a = 0; a < kAccumulators; ++a) {
        const Vec v = hn::LoadU(d, x + i + a * kLanes);
        acc[a] = hn::MulAdd(v, v, acc[a]);
      }
    }
    TQ_UNROLL
    for (int a = 0; a < kAccumulators; ++a) {  // fma(0, 0, lane) leaves a missing element's lane
      const int64_t rest = n - (i + a * kLanes);
      if (rest > 0) {
        const int64_t count = rest < kLanes ? rest : kLanes;
        const Vec v = LoadPart(d, x + i + a * kLanes, static_cast<size_t>(count));
        acc[a] = hn::MulAdd(v, v, acc[a]);
      }
      hn::Store(acc[a], d, lanes + slice + a * kLanes);
    }
  }
}

HWY_INLINE float SumOfSquares(const float* x, int64_t n) {
  const VecTag d;
  HWY_ALIGN float lanes[kWidth];
  SquareLanes(x, n, lanes);
  for (int64_t h = kWidth / 2; h >= kLanes; h /= 2) {
    for (int64_t j = 0; j < h; j += kLanes) {
      hn::Store(hn::Add(hn::Load(d, lanes + j), hn::Load(d, lanes + j + h)), d, lanes + j);
    }
  }
  return TreeSum(hn::Load(d, lanes));
}

HWY_INLINE Vec Scale(Vec x, Vec w, Vec r, Vec one, bool plus_one) {
  return hn::Mul(hn::Mul(x, r), plus_one ? hn::Add(one, w) : w);
}

}  // namespace

void RmsNormRow(const float* x, const float* w, bool plus_one, float eps, int64_t n, float* out) {
  const VecTag d;
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const Vec r = hn::Set(d, 1.0f / std::sqrt(mean + eps));
  const Vec one = hn::Set(d, 1.0f);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec y = Scale(hn::LoadU(d, x + i), hn::LoadU(d, w + i), r, one, plus_one);
    hn::StoreU(y, d, out + i);
  }
  if (i == n) return;
  const size_t rest = static_cast<size_t>(n - i);
  const Vec y = Scale(LoadPart(d, x + i, rest), LoadPart(d, w + i, rest), r, one, plus_one);
  StorePart(y, d, out + i, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

// Sums along a vector: 256 virtual lanes and one fixed tree (docs/numerics.md).

#if defined(TQ_CPU_LANE_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TQ_CPU_LANE_SUM_INL_H_
#undef TQ_CPU_LANE_SUM_INL_H_
#else
#define TQ_CPU_LANE_SUM_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/vec_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {

struct SumStep {
  HWY_INLINE Vec operator()(Vec lane, Vec a, Vec) const { return hn::Add(lane, a); }
};
struct DotStep {
  HWY_INLINE Vec operator()(Vec lane, Vec a, Vec b) const { return hn::MulAdd(a, b, lane); }
};

// lane[i % 256] = step(lane[i % 256], a[i], b[i]) from +0, ascending: a slice of the lanes at a
// time; then the tree.
template <class Step>
HWY_INLINE float LaneSum(const float* a, const float* b, int64_t n, const Step& step) {
  constexpr int64_t kWidth = 256;
  constexpr int kAccumulators = 8;
  constexpr int64_t kSlice = int64_t{kAccumulators} * kLanes;
  const VecTag d;
  HWY_ALIGN float lanes[kWidth];
  for (int64_t slice = 0; slice < kWidth; slice += kSlice) {
    Vec acc[kAccumulators];
    TQ_UNROLL
    for (int c = 0; c < kAccumulators; ++c) acc[c] = hn::Zero(d);
    int64_t i = slice;
    for (; i + kSlice <= n; i += kWidth) {
      TQ_UNROLL
      for (int c = 0; c < kAccumulators; ++c) {
        const int64_t at = i + c * kLanes;
        acc[c] = step(acc[c], hn::LoadU(d, a + at), hn::LoadU(d, b + at));
      }
    }
    TQ_UNROLL
    for (int c = 0; c < kAccumulators; ++c) {
      const int64_t at = i + c * kLanes;
      if (at < n) {
        const size_t count = static_cast<size_t>(n - at < kLanes ? n - at : kLanes);
        const Vec next = step(acc[c], LoadPart(d, a + at, count), LoadPart(d, b + at, count));
        acc[c] = hn::IfThenElse(hn::FirstN(d, count), next, acc[c]);
      }
      hn::Store(acc[c], d, lanes + slice + c * kLanes);
    }
  }
  for (int64_t h = kWidth / 2; h >= kLanes; h /= 2) {
    for (int64_t j = 0; j < h; j += kLanes) {
      hn::Store(hn::Add(hn::Load(d, lanes + j), hn::Load(d, lanes + j + h)), d, lanes + j);
    }
  }
  return TreeSum(hn::Load(d, lanes));
}

HWY_INLINE float LaneDot(const float* a, const float* b, int64_t n) {
  return LaneSum(a, b, n, DotStep{});
}

// 1 / sqrt(sum / n + eps).
HWY_INLINE float InverseRms(float sum_of_squares, int64_t n, float eps) {
  return 1.0f / std::sqrt(sum_of_squares / static_cast<float>(n) + eps);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

// RmsNorm and LayerNorm of one row.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/norm.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/lane_sum-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {

void RmsNormRow(const float* x, const float* w, bool plus_one, float eps, int64_t n, float* out) {
  const VecTag tag;
  const Vec r = hn::Set(tag, InverseRms(LaneDot(x, x, n), n, eps));
  const Vec one = hn::Set(tag, 1.0f);
  if (w == nullptr) {
    ForVectors(
        n, out, [&](VecTag, Vec v) HWY_ATTR { return hn::Mul(v, r); }, x);
    return;
  }
  const auto scale = [&](VecTag, Vec v, Vec weight) HWY_ATTR {
    return hn::Mul(hn::Mul(v, r), plus_one ? hn::Add(one, weight) : weight);
  };
  ForVectors(n, out, scale, x, w);
}

void LayerNormRow(const LayerNormArgs& args, int64_t row) {
  const VecTag tag;
  const int64_t n = args.n;
  const float* x = args.x + row * n;
  float* out = args.out + row * n;
  const Vec mean = hn::Set(tag, LaneSum(x, x, n, SumStep{}) / static_cast<float>(n));
  ForVectors(
      n, out, [&](VecTag, Vec v) HWY_ATTR { return hn::Sub(v, mean); }, x);
  const Vec r = hn::Set(tag, InverseRms(LaneDot(out, out, n), n, args.eps));
  const auto scale = [&](VecTag, Vec v, Vec w, Vec b)
                         HWY_ATTR { return hn::MulAdd(hn::Mul(v, r), w, b); };
  ForVectors(n, out, scale, out, args.w, args.b);
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

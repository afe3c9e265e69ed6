// Add, softcap, scaling and rope: one output per lane, no sums.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/elementwise.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

// y0 = fma(x0, c, -(x1 * s)), y1 = fma(x1, c, x0 * s).
HWY_INLINE void Rotate(Vec x0, Vec x1, Vec c, Vec s, Vec* y0, Vec* y1) {
  *y0 = hn::MulSub(x0, c, hn::Mul(x1, s));
  *y1 = hn::MulAdd(x1, c, hn::Mul(x0, s));
}

}  // namespace

void Add(const float* x, float* y, int64_t n) {
  ForVectors(
      n, y, [](VecTag, Vec a, Vec b) HWY_ATTR { return hn::Add(a, b); }, y, x);
}

void Softcap(float* x, float cap, int64_t n) {
  const auto softcap = [cap](VecTag d, Vec v) HWY_ATTR {
    const Vec c = hn::Set(d, cap);
    return hn::Mul(c, VecTanh(d, hn::Div(v, c)));
  };
  ForVectors(n, x, softcap, x);
}

void ScaleRow(const float* x, float factor, int64_t n, float* out) {
  const auto scale = [factor](VecTag d, Vec v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); };
  ForVectors(n, out, scale, x);
}

void RopeHead(float* x, int64_t rotary_dim, const float* cos, const float* sin) {
  const VecTag d;
  const int64_t half = rotary_dim / 2;
  Vec y0, y1;
  int64_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    Rotate(hn::LoadU(d, x + i), hn::LoadU(d, x + half + i), hn::LoadU(d, cos + i),
           hn::LoadU(d, sin + i), &y0, &y1);
    hn::StoreU(y0, d, x + i);
    hn::StoreU(y1, d, x + half + i);
  }
  if (i == half) return;
  const size_t rest = static_cast<size_t>(half - i);
  Rotate(LoadPart(d, x + i, rest), LoadPart(d, x + half + i, rest), LoadPart(d, cos + i, rest),
         LoadPart(d, sin + i, rest), &y0, &y1);
  StorePart(y0, d, x + i, rest);
  StorePart(y1, d, x + half + i, rest);
}

void RopeHeadInterleaved(float* x, int64_t rotary_dim, const float* cos, const float* sin) {
  const VecTag d;
  const int64_t half = rotary_dim / 2;
  Vec x0, x1, y0, y1;
  int64_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    hn::LoadInterleaved2(d, x + 2 * i, x0, x1);
    Rotate(x0, x1, hn::LoadU(d, cos + i), hn::LoadU(d, sin + i), &y0, &y1);
    hn::StoreInterleaved2(y0, y1, d, x + 2 * i);
  }
  if (i == half) return;
  const size_t rest = static_cast<size_t>(half - i);
  HWY_ALIGN float pairs[32] = {};
  std::memcpy(pairs, x + 2 * i, 2 * rest * sizeof(float));
  hn::LoadInterleaved2(d, pairs, x0, x1);
  Rotate(x0, x1, LoadPart(d, cos + i, rest), LoadPart(d, sin + i, rest), &y0, &y1);
  hn::StoreInterleaved2(y0, y1, d, pairs);
  std::memcpy(x + 2 * i, pairs, 2 * rest * sizeof(float));
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

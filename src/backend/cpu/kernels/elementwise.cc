// Glu, add, softcap and rope: one output per lane, no sums.
#include <cstddef>
#include <cstdint>

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

// out[i] = op(a[i], b[i]); out may be a or b.
template <class Op>
HWY_INLINE void Map(const float* a, const float* b, float* out, int64_t n, const Op& op) {
  const VecTag d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(op(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  if (i == n) return;
  const size_t rest = static_cast<size_t>(n - i);
  StorePart(op(d, LoadPart(d, a + i, rest), LoadPart(d, b + i, rest)), d, out + i, rest);
}

struct SiluOp {
  HWY_INLINE Vec operator()(VecTag d, Vec gate, Vec up) const {
    return hn::Mul(VecSilu(d, gate), up);
  }
};
struct GeluTanhOp {
  HWY_INLINE Vec operator()(VecTag d, Vec gate, Vec up) const {
    return hn::Mul(VecGeluTanh(d, gate), up);
  }
};
struct AddOp {
  HWY_INLINE Vec operator()(VecTag, Vec y, Vec x) const { return hn::Add(y, x); }
};
struct SoftcapOp {
  float cap;
  HWY_INLINE Vec operator()(VecTag d, Vec x, Vec) const {
    const Vec c = hn::Set(d, cap);
    return hn::Mul(c, VecTanh(d, hn::Div(x, c)));
  }
};

// y0 = fma(x0, c, -(x1 * s)), y1 = fma(x1, c, x0 * s).
HWY_INLINE void Rotate(Vec x0, Vec x1, Vec c, Vec s, Vec* y0, Vec* y1) {
  *y0 = hn::MulSub(x0, c, hn::Mul(x1, s));
  *y1 = hn::MulAdd(x1, c, hn::Mul(x0, s));
}

}  // namespace

void GluSilu(const float* gate, const float* up, float* out, int64_t n) {
  Map(gate, up, out, n, SiluOp{});
}

void GluGeluTanh(const float* gate, const float* up, float* out, int64_t n) {
  Map(gate, up, out, n, GeluTanhOp{});
}

void Add(const float* x, float* y, int64_t n) { Map(y, x, y, n, AddOp{}); }

void Softcap(float* x, float cap, int64_t n) { Map(x, x, x, n, SoftcapOp{cap}); }

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

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

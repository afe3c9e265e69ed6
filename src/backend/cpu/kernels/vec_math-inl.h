// Shared by the Highway kernels: the f32 functions of base/math.h in vectors, operation by
// operation, partial loads and stores, and the in-register steps of butterflies and trees.

#if defined(TQ_CPU_VEC_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TQ_CPU_VEC_MATH_INL_H_
#undef TQ_CPU_VEC_MATH_INL_H_
#else
#define TQ_CPU_VEC_MATH_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "base/math.h"
#include "hwy/highway.h"

// Arrays of registers stay in registers only when every loop over them is unrolled.
#if defined(__clang__)
#define TQ_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TQ_UNROLL _Pragma("GCC unroll 32")
#endif

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using VecTag = hn::CappedTag<float, 16>;
using Vec = hn::VFromD<VecTag>;
inline constexpr int kLanes = static_cast<int>(HWY_MAX_BYTES / sizeof(float));
inline constexpr bool kManyRegisters = HWY_TARGET != HWY_AVX2;  // 32, else 16

// The first n lanes from memory (nothing behind is touched), the others +0. 0 < n <= lanes.
template <class D>
HWY_INLINE hn::VFromD<D> LoadPart(D d, const float* p, size_t n) {
  HWY_ALIGN float buffer[16] = {};
  std::memcpy(buffer, p, n * sizeof(float));
  return hn::Load(d, buffer);
}

template <class D>
HWY_INLINE void StorePart(hn::VFromD<D> v, D d, float* p, size_t n) {
  HWY_ALIGN float buffer[16];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, n * sizeof(float));
}

// out[i] = op(d, vectors of the inputs) for i < n; out may be an input.
template <class Op, class... Inputs>
HWY_INLINE void ForVectors(int64_t n, float* out, const Op& op, const Inputs*... inputs) {
  const VecTag d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(op(d, hn::LoadU(d, inputs + i)...), d, out + i);
  if (i == n) return;
  const size_t rest = static_cast<size_t>(n - i);
  StorePart(op(d, LoadPart(d, inputs + i, rest)...), d, out + i, rest);
}

// (p[0], p[1]) in every pair of lanes.
HWY_INLINE Vec SetPair(const float* p) {
  const hn::RepartitionToWide<hn::RebindToUnsigned<VecTag>> du64;
  uint64_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return hn::BitCast(VecTag(), hn::Set(du64, bits));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecExp(D d, V x) {
  using C = ExpConstants;
  const V set_zero = x;
  x = hn::Min(x, hn::Set(d, C::kMax));
  const V n = hn::Round(hn::Mul(x, hn::Set(d, C::kLog2E)));
  V r = hn::NegMulAdd(n, hn::Set(d, C::kLn2Hi), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::kLn2Lo), r);
  V p = hn::Set(d, C::kC5);
  p = hn::MulAdd(p, r, hn::Set(d, C::kC4));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC3));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC2));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC1));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC0));
  p = hn::MulAdd(p, hn::Mul(r, r), r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  // (int(n) + 127) << 23: the low bits of n + 1.5 * 2^23 are those of the integer n.
  const hn::RebindToUnsigned<D> du;
  const auto biased = hn::BitCast(du, hn::Add(n, hn::Set(d, 12582912.0f)));
  const auto scale = hn::Add(hn::ShiftLeft<23>(biased), hn::Set(du, uint32_t{127} << 23));
  p = hn::Mul(p, hn::BitCast(d, scale));
  return hn::IfThenZeroElse(hn::Lt(set_zero, hn::Set(d, C::kMin)), p);
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecSigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, VecExp(d, hn::Neg(x))));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecSilu(D d, V x) {
  return hn::Mul(x, VecSigmoid(d, x));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecTanh(D d, V x) {
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  return hn::Sub(one, hn::Div(two, hn::Add(VecExp(d, hn::Mul(two, x)), one)));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecGeluTanh(D d, V x) {
  const V cubic = hn::Mul(hn::Mul(hn::Set(d, 0.044715f), x), x);
  const V u = hn::Mul(hn::Set(d, 0.7978845608f), hn::MulAdd(cubic, x, x));
  return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), hn::Add(hn::Set(d, 1.0f), VecTanh(d, u)));
}

// Comparisons instead of Min and Max: those differ between processors in the sign of a zero.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecRelu(D d, V x) {
  return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), x);
}

// y = x < low ? low : x, then y > high ? high : y.
template <class V>
HWY_INLINE V VecLimit(V x, V low, V high) {
  const V y = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(y, high), high, y);
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecLog1pUnit(D d, V y) {
  using C = Log1pConstants;
  const V two = hn::Set(d, 2.0f);
  const V s = hn::Div(y, hn::Add(two, y));
  const V z = hn::Mul(s, s);
  const V twice = hn::Mul(two, s);
  V p = hn::Set(d, C::kC6);
  p = hn::MulAdd(p, z, hn::Set(d, C::kC5));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC4));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC3));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC2));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC1));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC0));
  return hn::MulAdd(hn::Mul(twice, z), p, twice);
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V VecSoftplus(D d, V x) {
  return hn::Add(VecRelu(d, x), VecLog1pUnit(d, VecExp(d, hn::Neg(hn::Abs(x)))));
}

// One number at a time: the scalar functions of base/math.h would call the C library for each fma.
HWY_INLINE float ScalarExp(float x) { return hn::GetLane(VecExp(VecTag(), hn::Set(VecTag(), x))); }

HWY_INLINE float ScalarFma(float a, float b, float c) {
  const VecTag d;
  return hn::GetLane(hn::MulAdd(hn::Set(d, a), hn::Set(d, b), hn::Set(d, c)));
}

// Lane j of the result is lane j ^ h of v.
template <int h>
HWY_INLINE Vec SwapLanes(Vec v) {
  const VecTag d;
  if constexpr (h == 1) {
    return hn::Shuffle2301(v);
  } else if constexpr (h == 2) {
    return hn::Shuffle1032(v);
  } else if constexpr (2 * h == kLanes) {
    return hn::ConcatLowerUpper(d, v, v);
  } else {
    static_assert(h == 4);
    return hn::SwapAdjacentBlocks(v);
  }
}

// The tree h = lanes / 2, ..., 1 of one vector.
HWY_INLINE float TreeSum(Vec v) {
  if constexpr (kLanes >= 16) v = hn::Add(v, SwapLanes<8>(v));
  if constexpr (kLanes >= 8) v = hn::Add(v, SwapLanes<4>(v));
  v = hn::Add(v, SwapLanes<2>(v));
  v = hn::Add(v, SwapLanes<1>(v));
  return hn::GetLane(v);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

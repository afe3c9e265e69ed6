// Activation preparation: signs and block Hadamard transform, and the int8 quantizer. A fused
// multiply-add with +-1 rounds like the add or subtract it stands for.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops.h"
#include "codec/hadamard.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/rotate.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

constexpr int kMaxM = 28;

// The step h < lanes inside a register: (a, b) -> (a + b, a - b).
template <int h>
HWY_INLINE Vec RegisterStep(Vec v) {
  HWY_ALIGN static constexpr float kPattern[16] = {
      (0 & h) ? -1.f : 1.f,  (1 & h) ? -1.f : 1.f,  (2 & h) ? -1.f : 1.f,  (3 & h) ? -1.f : 1.f,
      (4 & h) ? -1.f : 1.f,  (5 & h) ? -1.f : 1.f,  (6 & h) ? -1.f : 1.f,  (7 & h) ? -1.f : 1.f,
      (8 & h) ? -1.f : 1.f,  (9 & h) ? -1.f : 1.f,  (10 & h) ? -1.f : 1.f, (11 & h) ? -1.f : 1.f,
      (12 & h) ? -1.f : 1.f, (13 & h) ? -1.f : 1.f, (14 & h) ? -1.f : 1.f, (15 & h) ? -1.f : 1.f};
  return hn::MulAdd(v, hn::Load(VecTag(), kPattern), SwapLanes<h>(v));
}

// The steps h < min(lanes, pow2).
HWY_INLINE Vec RegisterSteps(Vec v, int64_t pow2) {
  if (pow2 > 1) v = RegisterStep<1>(v);
  if (pow2 > 2) v = RegisterStep<2>(v);
  if constexpr (kLanes >= 8) {
    if (pow2 > 4) v = RegisterStep<4>(v);
  }
  if constexpr (kLanes >= 16) {
    if (pow2 > 8) v = RegisterStep<8>(v);
  }
  return v;
}

// Steps between the registers v[0 .. kCount), whose values are `h` (any) apart.
template <int kCount>
HWY_INLINE void BetweenRegisters(Vec* v) {
  TQ_UNROLL
  for (int h = 1; h < kCount; h *= 2) {
    TQ_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if ((i & h) == 0) {
        const Vec a = v[i], b = v[i + h];
        v[i] = hn::Add(a, b);
        v[i + h] = hn::Sub(a, b);
      }
    }
  }
}

// Signs and the first steps: all h < kCount * lanes (pow2 is at least that).
template <int kCount>
HWY_INLINE void FirstSteps(float* x, const float* signs, int64_t n) {
  const VecTag d;
  for (int64_t i = 0; i < n; i += kCount * kLanes) {
    Vec v[kCount];
    TQ_UNROLL
    for (int r = 0; r < kCount; ++r) {
      const int64_t at = i + r * kLanes;
      v[r] = hn::Mul(hn::LoadU(d, x + at), hn::LoadU(d, signs + at));
      v[r] = RegisterSteps(v[r], kLanes);
    }
    BetweenRegisters<kCount>(v);
    TQ_UNROLL
    for (int r = 0; r < kCount; ++r) hn::StoreU(v[r], d, x + i + r * kLanes);
  }
}

// Signs and the steps h < min(lanes, pow2) for any n (a multiple of pow2).
HWY_INLINE void FirstStepsAnyLength(float* x, const float* signs, int64_t n, int64_t pow2) {
  const VecTag d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec v = hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, signs + i));
    hn::StoreU(RegisterSteps(v, pow2), d, x + i);
  }
  if (i == n) return;
  const size_t rest = static_cast<size_t>(n - i);
  const Vec v = hn::Mul(LoadPart(d, x + i, rest), LoadPart(d, signs + i, rest));
  StorePart(RegisterSteps(v, pow2), d, x + i, rest);
}

// The steps h, 2h, ..., kCount / 2 * h in one pass; h is a multiple of the lanes.
template <int kCount>
HWY_INLINE void Pass(float* x, int64_t n, int64_t h, float scale) {
  const VecTag d;
  const Vec factor = hn::Set(d, scale);
  for (int64_t base = 0; base < n; base += kCount * h) {
    for (int64_t i = base; i < base + h; i += kLanes) {
      Vec v[kCount];
      TQ_UNROLL
      for (int r = 0; r < kCount; ++r) v[r] = hn::LoadU(d, x + i + r * h);
      BetweenRegisters<kCount>(v);
      TQ_UNROLL
      for (int r = 0; r < kCount; ++r) hn::StoreU(hn::Mul(v[r], factor), d, x + i + r * h);
    }
  }
}

// Steps h, 2h, ... below pow2, then the multiplication by scale (1 is exact: it changes nothing).
HWY_INLINE void RemainingSteps(float* x, int64_t n, int64_t h, int64_t pow2, float scale) {
  bool scaled = false;
  while (h < pow2) {
    const int64_t left = pow2 / h;
    const int64_t count = left >= 8 ? 8 : left;
    scaled = count == left;
    const float factor = scaled ? scale : 1.0f;
    if (count == 8) {
      Pass<8>(x, n, h, factor);
    } else if (count == 4) {
      Pass<4>(x, n, h, factor);
    } else {
      Pass<2>(x, n, h, factor);
    }
    h *= count;
  }
  if (scaled || scale == 1.0f) return;
  const VecTag d;
  int64_t i = 0;
  const Vec factor = hn::Set(d, scale);
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, x + i);
  for (; i < n; ++i) x[i] = x[i] * scale;
}

// y_j = sum over c of entry(j, c) * x_c for kCount vectors of every row of one block, then the
// scale. entries: HadamardEntriesByFour.
template <int kCount, class D, class V = hn::VFromD<D>>
HWY_INLINE void SmallMatrixColumns(D d, float* x, int m, int64_t stride, const float* entries,
                                   float scale) {
  constexpr int64_t kStep = hn::MaxLanes(D());
  HWY_ALIGN float in[kMaxM * kCount * kStep];
  for (int c = 0; c < m; ++c) {
    TQ_UNROLL
    for (int p = 0; p < kCount; ++p) {
      hn::StoreU(hn::LoadU(d, x + c * stride + p * kStep), d, in + (c * kCount + p) * kStep);
    }
  }
  const V factor = hn::Set(d, scale);
  for (int j = 0; j < m; j += 4, entries += 4 * m) {
    V sum[4][kCount];
    TQ_UNROLL
    for (int b = 0; b < 4; ++b) {
      TQ_UNROLL
      for (int p = 0; p < kCount; ++p) {
        sum[b][p] = hn::Mul(hn::LoadU(d, in + p * kStep), hn::Set(d, entries[b]));
      }
    }
    for (int c = 1; c < m; ++c) {
      V v[kCount];
      TQ_UNROLL
      for (int p = 0; p < kCount; ++p) v[p] = hn::LoadU(d, in + (c * kCount + p) * kStep);
      TQ_UNROLL
      for (int b = 0; b < 4; ++b) {
        const V entry = hn::Set(d, entries[c * 4 + b]);
        TQ_UNROLL
        for (int p = 0; p < kCount; ++p) sum[b][p] = hn::MulAdd(v[p], entry, sum[b][p]);
      }
    }
    TQ_UNROLL
    for (int b = 0; b < 4; ++b) {
      TQ_UNROLL
      for (int p = 0; p < kCount; ++p) {
        hn::StoreU(hn::Mul(sum[b][p], factor), d, x + (j + b) * stride + p * kStep);
      }
    }
  }
}

template <int kCount, class D>
HWY_INLINE void SmallMatrixBlock(D d, float* x, int m, int64_t pow2, const float* entries,
                                 float scale) {
  constexpr int64_t kStep = hn::MaxLanes(D()) * kCount;
  for (int64_t i = 0; i < pow2; i += kStep) {
    SmallMatrixColumns<kCount>(d, x + i, m, pow2, entries, scale);
  }
}

HWY_INLINE void SmallMatrix(float* x, int64_t n, int m, int64_t pow2, float scale) {
  const float* entries = HadamardEntriesByFour(m);
  for (int64_t base = 0; base < n; base += m * pow2) {
    float* block = x + base;
    if (pow2 >= 2 * kLanes) {
      SmallMatrixBlock<2>(VecTag(), block, m, pow2, entries, scale);
    } else if (pow2 >= kLanes) {
      SmallMatrixBlock<1>(VecTag(), block, m, pow2, entries, scale);
    } else if (pow2 >= 4) {
      SmallMatrixBlock<1>(hn::CappedTag<float, 4>(), block, m, pow2, entries, scale);
    } else {
      SmallMatrixBlock<1>(hn::CappedTag<float, 1>(), block, m, pow2, entries, scale);
    }
  }
}

HWY_INLINE float MaxAbs(const float* x, int64_t n) {
  const VecTag d;
  Vec max = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) max = hn::Max(max, hn::Abs(hn::LoadU(d, x + i)));
  if (i < n) max = hn::Max(max, hn::Abs(LoadPart(d, x + i, static_cast<size_t>(n - i))));
  return hn::GetLane(hn::MaxOfLanes(d, max));  // a maximum is the same in any order
}

}  // namespace

void RotateRow(float* x, const float* signs, int64_t n, int hadamard_m, int64_t hadamard_pow2) {
  const double size = static_cast<double>(hadamard_m * hadamard_pow2);
  const float scale = static_cast<float>(1.0 / std::sqrt(size));
  const float step_scale = hadamard_m > 1 ? 1.0f : scale;
  int64_t h = kLanes;
  if (hadamard_pow2 >= 8 * kLanes) {
    FirstSteps<8>(x, signs, n);
    h = 8 * kLanes;
  } else {
    FirstStepsAnyLength(x, signs, n, hadamard_pow2);
  }
  RemainingSteps(x, n, h, hadamard_pow2, step_scale);
  if (hadamard_m > 1) SmallMatrix(x, n, hadamard_m, hadamard_pow2, scale);
}

void QuantizeRow(const float* x, int64_t n, int64_t block, int8_t* q, float* sx) {
  const VecTag d;
  const hn::Rebind<int8_t, VecTag> d8;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = n - begin < block ? n : begin + block;
    const float max = MaxAbs(x + begin, end - begin);
    const bool empty = max < kMinActivation;
    *sx++ = empty ? 0.0f : max / 127.0f;
    const Vec factor = hn::Set(d, empty ? 0.0f : 127.0f / max);
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), factor))), d8, q + i);
    }
    if (i == end) continue;
    const size_t rest = static_cast<size_t>(end - i);
    HWY_ALIGN int8_t codes[16];
    hn::Store(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(LoadPart(d, x + i, rest), factor))), d8,
              codes);
    std::memcpy(q + i, codes, rest);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

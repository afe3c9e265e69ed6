// Codes and scales of new keys and values: the bits of KvEncode (codec/kv_format.h) with its
// search. Its sums have four lanes, so a vector holds several of the candidate scales.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/highway_targets.h"
#include "codec/kv_format.h"
#include "codec/kv_scale.h"
#include "codec/turbo_quant_encode.h"
#include "tensor/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/kv_encode.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

constexpr int kCandidates = kKvScaleCandidates;
constexpr int64_t kLanes = hn::MaxLanes(VecTag());

// errors[c] of all candidate scales: sum of (|x| - rounded)^2. kSize: half of the codebook.
template <int kSize>
HWY_INLINE void SquaredErrors(const KvCodebook& codebook, const float* x, int64_t n,
                              const float* scales, float* errors) {
  constexpr int64_t kTogether = kLanes / 4;
  static_assert(kCandidates % kTogether == 0);
  const VecTag d;
  const float* values = codebook.stored.data() + kSize;
  const float* bounds = codebook.boundaries.data() + kSize;
  for (int64_t first = 0; first < kCandidates; first += kTogether) {
    HWY_ALIGN float lanes[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) lanes[i] = scales[first + i / 4];
    const Vec scale = hn::Load(d, lanes);
    const Vec smallest = hn::Mul(hn::Set(d, values[0]), scale);
    Vec boundaries[kSize], steps[kSize];
    TQ_UNROLL
    for (int k = 0; k + 1 < kSize; ++k) {
      boundaries[k] = hn::Mul(hn::Set(d, bounds[k]), scale);
      steps[k] = hn::Mul(hn::Set(d, values[k + 1] - values[k]), scale);
    }
    Vec sum = hn::Zero(d);
    for (int64_t i = 0; i < n; i += 4) {
      const Vec size = hn::Abs(hn::LoadDup128(d, x + i));
      Vec rounded = smallest;
      TQ_UNROLL
      for (int k = 0; k + 1 < kSize; ++k) {
        rounded = hn::Add(rounded, hn::IfThenElseZero(hn::Ge(size, boundaries[k]), steps[k]));
      }
      const Vec error = hn::Sub(size, rounded);
      sum = hn::Add(sum, hn::Mul(error, error));
    }
    hn::Store(sum, d, lanes);
    for (int64_t c = 0; c < kTogether; ++c) {
      const float* four = lanes + 4 * c;
      errors[first + c] = (four[0] + four[1]) + (four[2] + four[3]);
    }
  }
}

// codes[i] = boundaries <= x[i] / divisor.
template <int kSize>
HWY_INLINE void CountBoundaries(const KvCodebook& codebook, const float* x, int64_t n,
                                float divisor, uint8_t* codes) {
  const VecTag d;
  const hn::RebindToSigned<VecTag> d32;
  const hn::Rebind<uint8_t, VecTag> d8;
  const auto one = hn::Set(d32, 1);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec unit = hn::Div(hn::LoadU(d, x + i), hn::Set(d, divisor));
    auto count = hn::Zero(d32);
    for (int k = 0; k + 1 < 2 * kSize; ++k) {
      const auto reached = hn::Ge(unit, hn::Set(d, codebook.boundaries[static_cast<size_t>(k)]));
      count = hn::Add(count, hn::IfThenElseZero(hn::RebindMask(d32, reached), one));
    }
    hn::StoreU(hn::DemoteTo(d8, count), d8, codes + i);
  }
}

template <int kSize>
HWY_INLINE uint16_t EncodeGroup(const KvCodebook& codebook, const float* x, int64_t n,
                                uint8_t* codes) {
  const float rms = TurboQuantRms({x, static_cast<size_t>(n)});
  uint16_t bits[kCandidates];
  float scales[kCandidates], errors[kCandidates];
  for (int c = 0; c < kCandidates; ++c) {
    bits[c] = KvScaleCandidate(rms, c);
    scales[c] = F16ToF32(bits[c]);
  }
  SquaredErrors<kSize>(codebook, x, n, scales, errors);
  uint16_t best = KvScaleBits(rms);
  float least = std::numeric_limits<float>::infinity();
  for (int c = 0; c < kCandidates; ++c) {
    if (!(errors[c] < least)) continue;
    best = bits[c];
    least = errors[c];
  }
  CountBoundaries<kSize>(codebook, x, n, F16ToF32(best), codes);
  return best;
}

HWY_INLINE uint16_t EncodeInt8(const float* x, int64_t n, uint8_t* codes) {
  const VecTag d;
  const hn::RebindToSigned<VecTag> d32;
  const hn::Rebind<uint8_t, VecTag> d8;
  Vec largest = hn::Zero(d);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec size = hn::Abs(hn::LoadU(d, x + i));
    largest = hn::IfThenElse(hn::Lt(largest, size), size, largest);  // passes over a NaN
  }
  HWY_ALIGN float lanes[kLanes];
  hn::Store(largest, d, lanes);
  const uint16_t bits = KvScaleBits(*std::max_element(lanes, lanes + kLanes) / 127.0f);
  const float divisor = F16ToF32(bits);
  const Vec high = hn::Set(d, 127.0f), low = hn::Set(d, -127.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    Vec q = hn::Zero(d);
    if (divisor != 0.0f) q = hn::Round(hn::Div(hn::LoadU(d, x + i), hn::Set(d, divisor)));
    const Vec limited =
        hn::IfThenElse(hn::Gt(q, high), high, hn::IfThenElse(hn::Gt(q, low), q, low));
    const auto code = hn::Add(hn::ConvertTo(d32, limited), hn::Set(d32, 128));
    hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i);
  }
  return bits;
}

}  // namespace

void EncodeKv(KvFormat format, const float* x, int64_t n, int group, uint8_t* codes,
              uint16_t* scales) {
  const bool known = format == KvFormat::kInt8 || KvBits(format) <= 4;
  if (!known || group % 16 != 0) {
    KvEncode(format, KvScale::kSearch, {x, static_cast<size_t>(n)}, group, codes, scales);
    return;
  }
  for (; n > 0; n -= group, x += group, codes += group, ++scales) {
    if (format == KvFormat::kInt8) {
      *scales = EncodeInt8(x, group, codes);
      continue;
    }
    const KvCodebook& codebook = KvCodebookOf(KvBits(format));
    *scales = codebook.stored.size() == 4   ? EncodeGroup<2>(codebook, x, group, codes)
              : codebook.stored.size() == 8 ? EncodeGroup<4>(codebook, x, group, codes)
                                            : EncodeGroup<8>(codebook, x, group, codes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

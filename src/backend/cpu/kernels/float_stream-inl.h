// Float matmul for few tokens: the packed weights stream through once, with the even and odd chains
// of all tokens in registers. Part of float_matmul.cc.

#if defined(TQ_CPU_FLOAT_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TQ_CPU_FLOAT_STREAM_INL_H_
#undef TQ_CPU_FLOAT_STREAM_INL_H_
#else
#define TQ_CPU_FLOAT_STREAM_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/vec_math-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 256;         // columns whose even and odd chains start at +0
constexpr int kTileVecs = 16 / kLanes;  // vectors of one tile
constexpr int kRows = static_cast<int>(kTileRows);
constexpr size_t kPrefetchBytes = 4096;

// The streaming form keeps two accumulators per token and vector of rows. With more tokens it takes
// half of a tile's rows at a time.
constexpr int kMaxDirect = kLanes == 16 ? 8 : 6;
constexpr int DirectVecs(int tokens) {
  return kLanes == 16 || tokens <= 3 ? kTileVecs : kTileVecs / 2;
}
using WideTag = hn::RebindToUnsigned<VecTag>;
using HalfTag = hn::Rebind<hwy::float16_t, VecTag>;

HWY_INLINE void PrefetchAhead(const std::byte* p) {
  hwy::Prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + kPrefetchBytes));
}

HWY_INLINE Vec LoadF16(const std::byte* p) {
  return hn::PromoteTo(VecTag(), hn::LoadU(HalfTag(), reinterpret_cast<const hwy::float16_t*>(p)));
}

// y = y + (e + o) for the rows of kVecs vectors and one token.
template <int kVecs>
HWY_INLINE void CloseBlock(const Vec (&e)[kVecs], const Vec (&o)[kVecs], float* y) {
  const VecTag d;
  TQ_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    const Vec sum = hn::Add(e[v], o[v]);
    hn::Store(hn::Add(hn::Load(d, y + v * kLanes), sum), d, y + v * kLanes);
  }
}

// How the chains use the weights of one pair of columns: the kVecs vectors of rows at w.
struct F32Step {
  static constexpr int64_t kPairBytes = 128;
  template <int kTokens, int kVecs>
  HWY_INLINE void Pair(const std::byte* w, const float* x, int64_t ldx, Vec (&e)[kTokens][kVecs],
                       Vec (&o)[kTokens][kVecs]) const {
    Column(w, x, ldx, e);
    Column(w + 64, x + 1, ldx, o);
  }
  template <int kTokens, int kVecs>
  HWY_INLINE void Last(const std::byte* w, const float* x, int64_t ldx,
                       Vec (&e)[kTokens][kVecs]) const {
    Column(w, x, ldx, e);
  }

 private:
  template <int kTokens, int kVecs>
  HWY_INLINE void Column(const std::byte* w, const float* x, int64_t ldx,
                         Vec (&sum)[kTokens][kVecs]) const {
    const VecTag d;
    PrefetchAhead(w);
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const Vec weight = hn::LoadU(d, reinterpret_cast<const float*>(w) + v * kLanes);
      TQ_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        sum[t][v] = hn::MulAdd(weight, hn::Set(d, x[t * ldx]), sum[t][v]);
      }
    }
  }
};

struct Bf16Step {
  static constexpr int64_t kPairBytes = 64;
  template <int kTokens, int kVecs>
  HWY_INLINE void Pair(const std::byte* w, const float* x, int64_t ldx, Vec (&e)[kTokens][kVecs],
                       Vec (&o)[kTokens][kVecs]) const {
    const VecTag d;
    const WideTag du;
    PrefetchAhead(w);
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const auto raw = hn::LoadU(du, reinterpret_cast<const uint32_t*>(w) + v * kLanes);
      const Vec even = hn::BitCast(d, hn::ShiftLeft<16>(raw));
      const Vec odd = hn::BitCast(d, hn::And(raw, hn::Set(du, 0xFFFF0000u)));
      TQ_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        e[t][v] = hn::MulAdd(even, hn::Set(d, x[t * ldx]), e[t][v]);
        o[t][v] = hn::MulAdd(odd, hn::Set(d, x[t * ldx + 1]), o[t][v]);
      }
    }
  }
  template <int kTokens, int kVecs>
  HWY_INLINE void Last(const std::byte* w, const float* x, int64_t ldx,
                       Vec (&e)[kTokens][kVecs]) const {
    const VecTag d;
    const WideTag du;
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const auto raw = hn::LoadU(du, reinterpret_cast<const uint32_t*>(w) + v * kLanes);
      const Vec even = hn::BitCast(d, hn::ShiftLeft<16>(raw));
      TQ_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        e[t][v] = hn::MulAdd(even, hn::Set(d, x[t * ldx]), e[t][v]);
      }
    }
  }
};

// kVecs vectors of rows of one block for kTokens tokens; y [kTokens][16] are running sums.
template <int kTokens, int kVecs, class Step>
HWY_INLINE void DirectBlock(const Step& step, const std::byte* w, const float* x, int64_t ldx,
                            int64_t cols, float* y) {
  const VecTag d;
  Vec e[kTokens][kVecs], o[kTokens][kVecs];
  TQ_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) e[t][v] = o[t][v] = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + 2 <= cols; k += 2, w += Step::kPairBytes) step.Pair(w, x + k, ldx, e, o);
  if (k < cols) step.Last(w, x + k, ldx, e);
  TQ_UNROLL
  for (int t = 0; t < kTokens; ++t) CloseBlock(e[t], o[t], y + t * kRows);
}

// The same for f16: lanes alternate between the even and the odd chain of a row, as the pairs lie
// in memory. A missing odd column meets x = 0: with the tile's zero padding, fma(0, 0, o) can only
// turn o = -0 into +0, and y = y + (e + o) is never -0, so it rounds the same.
struct F16Pairs {
  static constexpr int64_t kPairBytes = 64;
};
template <int kTokens, int kVecs>
HWY_INLINE void DirectBlock(const F16Pairs&, const std::byte* w, const float* x, int64_t ldx,
                            int64_t cols, float* y) {
  const VecTag d;
  Vec sum[kTokens][2 * kVecs];
  TQ_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    TQ_UNROLL
    for (int v = 0; v < 2 * kVecs; ++v) sum[t][v] = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + 2 <= cols; k += 2, w += 64) {
    PrefetchAhead(w);
    Vec pair[kTokens];
    TQ_UNROLL
    for (int t = 0; t < kTokens; ++t) pair[t] = SetPair(x + t * ldx + k);
    TQ_UNROLL
    for (int v = 0; v < 2 * kVecs; ++v) {
      const Vec weight = LoadF16(w + v * kLanes * 2);
      TQ_UNROLL
      for (int t = 0; t < kTokens; ++t) sum[t][v] = hn::MulAdd(weight, pair[t], sum[t][v]);
    }
  }
  if (k < cols) {
    TQ_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const float last[2] = {x[t * ldx + k], 0.0f};
      TQ_UNROLL
      for (int v = 0; v < 2 * kVecs; ++v) {
        sum[t][v] = hn::MulAdd(LoadF16(w + v * kLanes * 2), SetPair(last), sum[t][v]);
      }
    }
  }
  TQ_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    Vec e[kVecs], o[kVecs];
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      e[v] = hn::ConcatEven(d, sum[t][2 * v + 1], sum[t][2 * v]);
      o[v] = hn::ConcatOdd(d, sum[t][2 * v + 1], sum[t][2 * v]);
    }
    CloseBlock(e, o, y + t * kRows);
  }
}

// y [tokens][16] of one tile for kTokens tokens.
template <class Step, int kTokens>
HWY_NOINLINE void DirectTile(const FloatMatMulArgs& args, const std::byte* tile, const float* x,
                             float* y) {
  constexpr int kVecs = DirectVecs(kTokens);
  for (int64_t k = 0; k < args.num_cols; k += kBlock) {
    const int64_t cols = std::min(kBlock, args.num_cols - k);
    const std::byte* w = tile + k / 2 * Step::kPairBytes;
    for (int v = 0; v < kTileVecs; v += kVecs) {
      DirectBlock<kTokens, kVecs>(Step(), w + v * kLanes * 4, x + k, args.ldx, cols,
                                  y + v * kLanes);
    }
  }
}

template <class Step, int kTokens = kMaxDirect>
HWY_INLINE void DirectTileFor(int64_t num_tokens, const FloatMatMulArgs& args,
                              const std::byte* tile, const float* x, float* y) {
  if constexpr (kTokens > 1) {
    if (num_tokens < kTokens) {
      DirectTileFor<Step, kTokens - 1>(num_tokens, args, tile, x, y);
      return;
    }
  }
  DirectTile<Step, kTokens>(args, tile, x, y);
}

// Adds the bias and writes the rows of a tile that exist.
HWY_INLINE void WriteTile(const FloatMatMulArgs& args, int64_t tile, const float* y) {
  const int64_t first_row = tile * kRows;
  const int64_t n = std::min<int64_t>(kRows, args.num_rows - first_row);
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    float* to = args.y + t * args.ldy + first_row;
    for (int64_t r = 0; r < n; ++r) {
      const float sum = y[t * kRows + r];
      to[r] = args.bias == nullptr ? sum : sum + args.bias[first_row + r];
    }
  }
}

HWY_INLINE void DirectTiles(const FloatMatMulArgs& args, int64_t begin, int64_t end) {
  const int64_t tile_bytes = FloatTileBytes(args.type, args.num_cols);
  for (int64_t tile = begin; tile < end; ++tile) {
    HWY_ALIGN float y[kMaxDirect * kRows] = {};
    const std::byte* w = args.tiles + tile * tile_bytes;
    switch (args.type) {
      case FloatType::kF32:
        DirectTileFor<F32Step>(args.num_tokens, args, w, args.x, y);
        break;
      case FloatType::kF16:
        DirectTileFor<F16Pairs>(args.num_tokens, args, w, args.x, y);
        break;
      case FloatType::kBf16:
        DirectTileFor<Bf16Step>(args.num_tokens, args, w, args.x, y);
        break;
    }
    WriteTile(args, tile, y);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

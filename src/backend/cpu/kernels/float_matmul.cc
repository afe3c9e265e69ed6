// y[M, N] = x[M, K] * W[N, K]^T on tile16 float weights. Lanes are output rows. Few tokens:
// float_stream-inl.h. Many: each block of 256 columns is decoded to f32 panels, and the even, then
// the odd columns run as plain GEMM passes.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/float_matmul.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/float_stream-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

// Shape of the GEMM pass: vectors of kGemmTiles tiles times tokens.
constexpr int kGemmTiles = kLanes == 16 ? 2 : 1;
constexpr int kGemmTokens = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 5;
constexpr int kChunkTokens = 8 * kGemmTokens;  // tokens that share a decoded panel
// Rows of a block of x are copied this far apart: at their own distance, often a power of two, they
// would share cache sets.
constexpr int64_t kRowStride = kBlock + 16;

// panel[c][16] = columns [0, cols) of a block, as f32.
HWY_INLINE void DecodePanel(FloatType type, const std::byte* w, int64_t cols, float* panel) {
  const VecTag d;
  const WideTag du;
  const hn::Rebind<uint16_t, VecTag> du16;
  const auto low_mask = hn::Set(du, 0xFFFFu);
  for (int64_t k = 0; k < cols; k += 2, w += 64, panel += 32) {
    TQ_UNROLL
    for (int v = 0; v < kTileVecs; ++v) {
      const auto raw = hn::LoadU(du, reinterpret_cast<const uint32_t*>(w) + v * kLanes);
      Vec even, odd;
      if (type == FloatType::kBf16) {
        even = hn::BitCast(d, hn::ShiftLeft<16>(raw));
        odd = hn::BitCast(d, hn::AndNot(low_mask, raw));
      } else {
        const auto low = hn::TruncateTo(du16, hn::And(raw, low_mask));
        const auto high = hn::TruncateTo(du16, hn::ShiftRight<16>(raw));
        even = hn::PromoteTo(d, hn::BitCast(HalfTag(), low));
        odd = hn::PromoteTo(d, hn::BitCast(HalfTag(), high));
      }
      hn::Store(even, d, panel + v * kLanes);
      hn::Store(odd, d, panel + 16 + v * kLanes);  // the padding column of an odd K is not used
    }
  }
}

// One chain (even or odd columns from `first`) of kTiles tiles and kTokens tokens.
template <int kTiles, int kTokens>
HWY_INLINE void Chain(const float* const (&w)[kTiles], const float* x, int64_t first, int64_t cols,
                      const std::byte* next, Vec (&sum)[kTokens][kTiles * kTileVecs]) {
  const VecTag d;
  TQ_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    TQ_UNROLL
    for (int v = 0; v < kTiles * kTileVecs; ++v) sum[t][v] = hn::Zero(d);
  }
  for (int64_t k = first; k < cols; k += 2, next += 64) {
    hwy::Prefetch(next);
    Vec weight[kTiles * kTileVecs];
    TQ_UNROLL
    for (int v = 0; v < kTiles * kTileVecs; ++v) {
      weight[v] = hn::LoadU(d, w[v / kTileVecs] + k * 16 + v % kTileVecs * kLanes);
    }
    TQ_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Vec value = hn::Set(d, x[t * kRowStride + k]);
      TQ_UNROLL
      for (int v = 0; v < kTiles * kTileVecs; ++v) {
        sum[t][v] = hn::MulAdd(weight[v], value, sum[t][v]);
      }
    }
  }
}

// y [kTokens][ldy] of kTiles tiles += the block's (e + o).
template <int kTiles, int kTokens>
HWY_NOINLINE void GemmBlock(const float* const (&w)[kTiles], const float* x, int64_t cols,
                            const std::byte* const (&next)[kTiles], float* y, int64_t ldy) {
  const VecTag d;
  constexpr int kVecs = kTiles * kTileVecs;
  HWY_ALIGN float even[kTokens * kVecs * kLanes];
  Vec sum[kTokens][kVecs];
  Chain<kTiles, kTokens>(w, x, 0, cols, next[0], sum);
  TQ_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) hn::Store(sum[t][v], d, even + (t * kVecs + v) * kLanes);
  }
  Chain<kTiles, kTokens>(w, x, 1, cols, next[kTiles - 1], sum);
  TQ_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      const Vec block = hn::Add(hn::Load(d, even + (t * kVecs + v) * kLanes), sum[t][v]);
      float* to = y + t * ldy + v * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, to), block), d, to);
    }
  }
}

template <int kTiles, int kTokens = kGemmTokens>
HWY_INLINE void GemmBlockFor(int64_t num_tokens, const float* const (&w)[kTiles], const float* x,
                             int64_t cols, const std::byte* const (&next)[kTiles], float* y,
                             int64_t ldy) {
  if constexpr (kTokens > 1) {
    if (num_tokens < kTokens) {
      GemmBlockFor<kTiles, kTokens - 1>(num_tokens, w, x, cols, next, y, ldy);
      return;
    }
  }
  GemmBlock<kTiles, kTokens>(w, x, cols, next, y, ldy);
}

// A block of columns [first_col, first_col + cols) of some tokens: x [num_tokens][kRowStride].
struct GemmInput {
  const float* x;
  int64_t num_tokens;
  int64_t first_col;
  int64_t cols;
};

// y [num_tokens][ldy] of kTiles tiles from `tile` += the block's part.
template <int kTiles>
HWY_INLINE void GemmTiles(const FloatMatMulArgs& args, int64_t tile, const GemmInput& in, float* y,
                          int64_t ldy) {
  HWY_ALIGN float panels[kTiles][kBlock * 16];
  const int64_t tile_bytes = FloatTileBytes(args.type, args.num_cols);
  const float* w[kTiles];
  const std::byte* next[kTiles];  // the block that follows: fetched while this one is used
  for (int i = 0; i < kTiles; ++i) {
    const std::byte* from = args.tiles + (tile + i) * tile_bytes;
    next[i] = from + kTiles * tile_bytes + in.first_col * (args.type == FloatType::kF32 ? 64 : 32);
    if (args.type == FloatType::kF32) {
      w[i] = reinterpret_cast<const float*>(from) + in.first_col * 16;
    } else {
      DecodePanel(args.type, from + in.first_col * 32, in.cols, panels[i]);
      w[i] = panels[i];
    }
  }
  const int64_t groups = (in.num_tokens + kGemmTokens - 1) / kGemmTokens;
  const int64_t group_tokens = (in.num_tokens + groups - 1) / groups;
  for (int64_t t = 0; t < in.num_tokens; t += group_tokens) {
    GemmBlockFor<kTiles>(std::min(group_tokens, in.num_tokens - t), w, in.x + t * kRowStride,
                         in.cols, next, y + t * ldy, ldy);
    for (const std::byte*& p : next) p += in.cols / 2 * 64;
  }
}

// The tiles of a range: whole ones add to args.y, a last one with missing rows to `partial`.
HWY_INLINE void GemmRange(const FloatMatMulArgs& args, int64_t tile, int64_t whole_end, int64_t end,
                          const GemmInput& in, float* y, float* partial) {
  for (; tile + kGemmTiles <= whole_end; tile += kGemmTiles) {
    GemmTiles<kGemmTiles>(args, tile, in, y + tile * kRows, args.ldy);
  }
  for (; tile < whole_end; ++tile) GemmTiles<1>(args, tile, in, y + tile * kRows, args.ldy);
  for (; tile < end; ++tile) GemmTiles<1>(args, tile, in, partial, kRows);
}

// y [num_tokens][ldy], rows of the tiles [begin, end), for up to kChunkTokens tokens.
HWY_INLINE void GemmChunk(const FloatMatMulArgs& args, int64_t begin, int64_t end, const float* x,
                          int64_t num_tokens, float* y) {
  HWY_ALIGN float rows[kChunkTokens * kRowStride];
  HWY_ALIGN float partial[kChunkTokens * kRows] = {};
  const int64_t whole_end = std::min(end, args.num_rows / kRows);
  const int64_t first_row = begin * kRows, row_end = std::min(end * kRows, args.num_rows);
  for (int64_t t = 0; t < num_tokens; ++t) {
    std::fill(y + t * args.ldy + first_row, y + t * args.ldy + row_end, 0.0f);
  }
  for (int64_t k = 0; k < args.num_cols; k += kBlock) {
    const int64_t cols = std::min(kBlock, args.num_cols - k);
    for (int64_t t = 0; t < num_tokens; ++t) {
      std::memcpy(rows + t * kRowStride, x + t * args.ldx + k,
                  static_cast<size_t>(cols) * sizeof(float));
    }
    GemmRange(args, begin, whole_end, end, {rows, num_tokens, k, cols}, y, partial);
  }
  for (int64_t t = 0; t < num_tokens; ++t) {
    float* to = y + t * args.ldy;
    if (whole_end < end)
      std::copy_n(partial + t * kRows, row_end - whole_end * kRows, to + whole_end * kRows);
    if (args.bias == nullptr) continue;
    for (int64_t n = first_row; n < row_end; ++n) to[n] = to[n] + args.bias[n];
  }
}

}  // namespace

void FloatMatMul(const FloatMatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens == 0) return;
  if (args.num_tokens <= kMaxDirect) {
    DirectTiles(args, tile_begin, tile_end);
    return;
  }
  for (int64_t t = 0; t < args.num_tokens; t += kChunkTokens) {
    const int64_t tokens = std::min<int64_t>(kChunkTokens, args.num_tokens - t);
    GemmChunk(args, tile_begin, tile_end, args.x + t * args.ldx, tokens, args.y + t * args.ldy);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

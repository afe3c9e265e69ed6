// The skeleton that all integer matmul leaf files share: walk a tile, per group "decode unit ->
// dot", then flush into the f32 chains. An instruction set supplies a struct V:
//   Vi, Vf          a vector of 32-bit integers / floats; kRows lanes, one per output row
//   Decoder<kBits>  Load(codes): the raw vectors of a unit; Step(unit, t): the table's bytes of
//   step t DotUnit         adds all steps of a unit times the q of kM tokens to kM sums, each in
//                   ChainsPerSum(kM) registers (n: step t to acc[t % n * kM + m])
//   Prefetch<kBits> asks for codes that a later unit will want, PrefetchScales for scales
//   UnitsAtOnce     how many units the unrolled body may have
//   and the plain arithmetic that is used below
// Included only by leaf files; everything is static or in their anonymous namespaces, because the
// copies are compiled with different instruction sets.
#pragma once

#include "backend/cpu/kernels/int_matmul.h"

#define TQ_INLINE static inline __attribute__((always_inline))

namespace tq {
namespace {

template <int kBits>
struct UnitShape {
  static constexpr int kVectors = kBits == 3 ? 3 : 1;        // 64-byte vectors per unit
  static constexpr int kSteps = kBits == 3 ? 8 : 8 / kBits;  // of 4 columns; 8 bits: 1
  static constexpr int kColumns = 4 * kSteps;
};

// What stays the same for all rows of one pass.
struct Pass {
  const int8_t* q;
  const float* sx;
  const int32_t* corr;
  const int32_t* qsum;
  float* y;  // of token 0
};

// Code bytes ahead of the current ones: far enough for memory, near enough for the first cache.
constexpr int64_t kPrefetchBytes = 2048;
TQ_INLINE void PrefetchAhead(const std::byte* p) { __builtin_prefetch(p + kPrefetchBytes, 0, 3); }
// The same for scales, of which there are an eighth as many bytes or less.
TQ_INLINE void PrefetchScalesAhead(const std::byte* p) {
  __builtin_prefetch(p + kPrefetchBytes / 4, 0, 3);
}

// Scales of the TurboQuant matrices: f16, beside the codes in memory. Both kinds of scales know how
// far apart the parts of RowsPass are: pieces of one tile, or with 16 rows to a vector the same
// piece of neighbouring tiles.
template <class V>
struct HalfScales {
  static constexpr bool kHasMin = false;
  const uint16_t* scales;
  int64_t stride;

  HalfScales(const IntMatMulArgs& a, int64_t tile, int, int part) {
    const int64_t tile_scales = a.num_cols / a.group * 16;
    scales = a.scales + tile * tile_scales + part * V::kRows;
    stride = V::kRows == 16 ? tile_scales : V::kRows;
  }
  inline __attribute__((always_inline)) void Prefetch() const {
    V::PrefetchScales(reinterpret_cast<const std::byte*>(scales));
  }
  inline __attribute__((always_inline)) typename V::Vf Scale(int i) const {
    return V::LoadScales(scales + i * stride);
  }
  inline __attribute__((always_inline)) typename V::Vf Min(int) const { return V::ZeroFloat(); }
  inline __attribute__((always_inline)) void Next() { scales += 16; }
};

// Scales and mins of a grid, made f32 by ExpandTile: slot 0 or 1 of scale_work.
template <class V>
struct GridFloats {
  static constexpr bool kHasMin = true;
  const float* scales;
  int64_t stride;
  int64_t to_mins;

  GridFloats(const IntMatMulArgs& a, int64_t, int slot, int part) {
    const int64_t tile_floats = a.num_cols / a.group * 16;
    to_mins = tile_floats;
    scales = a.scale_work + slot * 2 * tile_floats + part * V::kRows;
    stride = V::kRows == 16 ? 2 * tile_floats : V::kRows;
  }
  inline __attribute__((always_inline)) void Prefetch() const {}
  inline __attribute__((always_inline)) typename V::Vf Scale(int i) const {
    return V::LoadAll(scales + i * stride);
  }
  inline __attribute__((always_inline)) typename V::Vf Min(int i) const {
    return V::LoadAll(scales + to_mins + i * stride);
  }
  inline __attribute__((always_inline)) void Next() { scales += 16; }
};

// Where kParts times kRows rows start.
template <class V, int kBits>
struct Rows {
  const std::byte* codes;
  int64_t row;
  int64_t code_stride;

  Rows(const IntMatMulArgs& a, int64_t tile, int part) {
    const int64_t tile_codes = CodeTileBytes(kBits, a.num_cols);
    codes = a.codes + tile * tile_codes + part * V::kRows * 4;
    row = tile * 16 + part * V::kRows;
    code_stride = V::kRows == 16 ? tile_codes : V::kRows * 4;
  }
};

template <class V, int kParts, int kM>
TQ_INLINE void Clear(typename V::Vf (&sums)[kParts][kM]) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
#pragma GCC unroll 8
    for (int m = 0; m < kM; ++m) sums[i][m] = V::ZeroFloat();
  }
}

// y[part][token] becomes final and goes to memory.
template <class V, int kParts, int kM>
TQ_INLINE void Finish(const IntMatMulArgs& a, const Pass& pass, int64_t first_row,
                      const typename V::Vf (&y)[kParts][kM]) {
  const typename V::Vf step = V::SetFloat(a.step);
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    const int64_t row = first_row + i * V::kRows;
    const int64_t left = a.num_rows - row;
    if (left <= 0) continue;
    const int rows = left >= V::kRows ? V::kRows : static_cast<int>(left);
#pragma GCC unroll 8
    for (int m = 0; m < kM; ++m) {
      typename V::Vf value = V::Mul(y[i][m], step);
      if (a.bias != nullptr) value = V::Add(value, V::LoadRows(a.bias + row, rows));
      V::StoreRows(pass.y + m * a.ldy + row, value, rows);
    }
  }
}

// kParts times kRows rows against kM tokens.
// kChunk: the columns that the unrolled body covers, at most 512 bytes of codes.
template <class V, class Scales, int kBits, int kChunk, int kM, int kParts>
__attribute__((noinline)) void RowsPass(const IntMatMulArgs& a, const Pass& pass,
                                        Rows<V, kBits> rows, Scales scales) {
  using Shape = UnitShape<kBits>;
  constexpr int kUnits = kChunk / Shape::kColumns;
  constexpr int kChains = V::ChainsPerSum(kM);
  const typename V::template Decoder<kBits> decoder(a.integers, V::TableBase(a.integers));
  const int64_t num_groups = a.num_cols / a.group;
  const int64_t groups_per_block = a.block / a.group;
  const int chunks_per_group = a.group / kChunk;
  const int8_t* q = pass.q;
  const int32_t* corr = pass.corr;
  const int32_t* qsum = pass.qsum;
  const float* sx = pass.sx;
  typename V::Vf y[kParts][kM];
  Clear<V>(y);
#pragma GCC unroll 1
  for (int64_t group = 0; group < num_groups;) {
    typename V::Vf p[kParts][kM];
    Clear<V>(p);
    const int64_t rest = num_groups - group;
    const int64_t in_block = rest < groups_per_block ? rest : groups_per_block;
    group += in_block;
#pragma GCC unroll 1
    for (int64_t g = 0; g < in_block; ++g) {
      typename V::Vi acc[kParts][kChains * kM];
#pragma GCC unroll 4
      for (int i = 0; i < kParts; ++i) {
#pragma GCC unroll 16
        for (int m = 0; m < kChains * kM; ++m) acc[i][m] = V::Set(m < kM ? corr[m] : 0);
      }
      corr += kM;
#pragma GCC unroll 1
      for (int chunk = 0; chunk < chunks_per_group; ++chunk) {
#pragma GCC unroll 8
        for (int u = 0; u < kUnits; ++u) {
          const std::byte* unit = rows.codes + u * Shape::kVectors * 64;
#pragma GCC unroll 3
          for (int v = 0; v < Shape::kVectors; ++v) V::template Prefetch<kBits>(unit + v * 64);
          V::template DotUnit<kBits, kM>(decoder, unit, rows.code_stride,
                                         q + u * Shape::kSteps * 4 * kM, acc);
        }
        rows.codes += kUnits * Shape::kVectors * 64;
        q += kChunk * kM;
      }
      scales.Prefetch();
#pragma GCC unroll 4
      for (int i = 0; i < kParts; ++i) {
        const typename V::Vf d = scales.Scale(i);
        const typename V::Vf least = scales.Min(i);
#pragma GCC unroll 8
        for (int m = 0; m < kM; ++m) {
          typename V::Vi sum = acc[i][m];
          if constexpr (kChains > 1) {
#pragma GCC unroll 4
            for (int c = 1; c < kChains; ++c) sum = V::AddInt(sum, acc[i][c * kM + m]);
          }
          if constexpr (Scales::kHasMin) {
            p[i][m] = V::Fma(least, V::ToFloat(V::Set(qsum[m])), p[i][m]);
          }
          p[i][m] = V::Fma(d, V::ToFloat(sum), p[i][m]);
        }
      }
      if constexpr (Scales::kHasMin) qsum += kM;
      scales.Next();
    }
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) {
#pragma GCC unroll 8
      for (int m = 0; m < kM; ++m) y[i][m] = V::Fma(V::SetFloat(sx[m]), p[i][m], y[i][m]);
    }
    sx += kM;
  }
  Finish<V>(a, pass, rows.row, y);
}

// Tiles [tile, tile + num_tiles), 1 or 2 of them.
template <class V, class Scales, int kBits, int kChunk, int kM>
void Tiles(const IntMatMulArgs& a, const Pass& pass, int64_t tile, int64_t num_tiles) {
  constexpr int kParts = V::PartsAtOnce(kM);
  constexpr int kPartsPerTile = 16 / V::kRows;
  constexpr int kMostColumns = V::template UnitsAtOnce<kBits>(kM) * UnitShape<kBits>::kColumns;
  constexpr int kUnrolled = kMostColumns < kChunk ? kMostColumns : kChunk;
  if constexpr (kParts > kPartsPerTile) {
    if (num_tiles == kParts) {
      return RowsPass<V, Scales, kBits, kUnrolled, kM, kParts>(a, pass, {a, tile, 0},
                                                               {a, tile, 0, 0});
    }
  }
  constexpr int kPartsOfOne = kParts < kPartsPerTile ? kParts : kPartsPerTile;
#pragma GCC unroll 1
  for (int i = 0; i < static_cast<int>(num_tiles); ++i) {
#pragma GCC unroll 1
    for (int part = 0; part < kPartsPerTile; part += kPartsOfOne) {
      RowsPass<V, Scales, kBits, kUnrolled, kM, kPartsOfOne>(a, pass, {a, tile + i, part},
                                                             {a, tile + i, i, part});
    }
  }
}

using TileFunction = void (*)(const IntMatMulArgs&, const Pass&, int64_t, int64_t);

template <class V, class Scales, int kBits, int kChunk>
struct TileFunctions {
  static constexpr TileFunction kByTokens[kMaxTokensPerPass] = {
      Tiles<V, Scales, kBits, kChunk, 1>, Tiles<V, Scales, kBits, kChunk, 2>,
      Tiles<V, Scales, kBits, kChunk, 3>, Tiles<V, Scales, kBits, kChunk, 4>,
      Tiles<V, Scales, kBits, kChunk, 5>, Tiles<V, Scales, kBits, kChunk, 6>,
      Tiles<V, Scales, kBits, kChunk, 7>, Tiles<V, Scales, kBits, kChunk, 8>};
};

template <class V, class Scales, int kBits>
const TileFunction* TileFunctionsForGroup(int group) {
  if constexpr (kBits != 3) {
    if (group == 16) return TileFunctions<V, Scales, kBits, 16>::kByTokens;
  }
  if (kBits == 8 || group == 32) return TileFunctions<V, Scales, kBits, 32>::kByTokens;
  return TileFunctions < V, Scales, kBits, kBits == 8 ? 32 : 64 > ::kByTokens;
}

// VSmall: for 2-bit codes of tables with small entries.
template <class V, class VSmall, class Scales>
const TileFunction* TileFunctionsFor(const IntMatMulArgs& a, bool small_table) {
  if (a.layout_bits == 2) {
    return small_table ? TileFunctionsForGroup<VSmall, Scales, 2>(a.group)
                       : TileFunctionsForGroup<V, Scales, 2>(a.group);
  }
  return a.layout_bits == 3 ? TileFunctionsForGroup<V, Scales, 3>(a.group)
                            : TileFunctionsForGroup<V, Scales, 4>(a.group);
}

// [end - begin][16] of one tile as f32: bases[g / base_groups] * factors[g].
template <class V>
void ExpandScales(GridScaleType type, const std::byte* bases, const int8_t* factors, int64_t begin,
                  int64_t end, int base_groups, float* out) {
  for (int64_t g = begin; g < end; ++g) {
    for (int part = 0; part < 16; part += V::kRows) {
      const int64_t at = g / base_groups * 16 + part;
      typename V::Vf value = type == GridScaleType::kF16
                                 ? V::LoadScales(reinterpret_cast<const uint16_t*>(bases) + at)
                             : type == GridScaleType::kBf16
                                 ? V::LoadBf16(reinterpret_cast<const uint16_t*>(bases) + at)
                                 : V::LoadAll(reinterpret_cast<const float*>(bases) + at);
      if (factors != nullptr) value = V::Mul(value, V::LoadInt8(factors + g * 16 + part));
      V::StoreAll(out + (g - begin) * 16 + part, value);
    }
  }
}

TQ_INLINE int64_t GridBaseBytes(const IntMatMulArgs& a) {
  return a.num_cols / a.group / a.grid->base_groups * 16 *
         (a.grid->type == GridScaleType::kF32 ? 4 : 2);
}

// Scales, then mins.
template <class V>
void ExpandTile(const IntMatMulArgs& a, int64_t tile, float* out) {
  const GridScales& grid = *a.grid;
  const int64_t num_groups = a.num_cols / a.group;
  const int64_t base_bytes = GridBaseBytes(a);
  const auto expand = [&](const std::byte* bases, const int8_t* factors, float* to) {
    ExpandScales<V>(grid.type, bases + tile * base_bytes,
                    factors == nullptr ? nullptr : factors + tile * num_groups * 16, 0, num_groups,
                    grid.base_groups, to);
  };
  expand(grid.bases, grid.factors, out);
  float* mins = out + num_groups * 16;
  if (grid.min_bases != nullptr) {
    expand(grid.min_bases, grid.min_factors, mins);
  } else {
    for (int64_t i = 0; i < num_groups * 16; i += V::kRows) V::StoreAll(mins + i, V::ZeroFloat());
  }
}

// Two tiles outside, passes of tokens inside: the codes stay in the cache.
template <class V>
void RunTiles(const IntMatMulArgs& a, const TileFunction* functions, int64_t tile_begin,
              int64_t tile_end) {
  const int64_t num_groups = a.num_cols / a.group;
  const int64_t num_blocks = (a.num_cols + a.block - 1) / a.block;
  for (int64_t tile = tile_begin; tile < tile_end; tile += 2) {
    const int64_t num_tiles = tile_end - tile >= 2 ? 2 : 1;
    if (a.grid != nullptr) {
      for (int64_t i = 0; i < num_tiles; ++i) {
        ExpandTile<V>(a, tile + i, a.scale_work + i * 2 * num_groups * 16);
      }
    }
    for (int64_t token = 0; token < a.num_tokens; token += kMaxTokensPerPass) {
      const int64_t left = a.num_tokens - token;
      const int64_t tokens = left < kMaxTokensPerPass ? left : kMaxTokensPerPass;
      const Pass pass{
          a.q + token * a.num_cols, a.sx + token * num_blocks, a.corr + token * num_groups,
          a.grid == nullptr ? nullptr : a.qsum + token * num_groups, a.y + token * a.ldy};
      functions[tokens - 1](a, pass, tile, num_tiles);
    }
  }
}

// Subtracted from all of them, it makes the integers unsigned.
TQ_INLINE int SmallestInteger(const int8_t* integers) {
  int smallest = 0;
  for (int i = 0; i < 16; ++i) smallest = integers[i] < smallest ? integers[i] : smallest;
  return smallest;
}

// values.Get looks at the low 4 bits of every lane.
template <class V, int kBits>
void DecodeTile(const std::byte* codes, const uint16_t* scales, const float* codebook, int group,
                int64_t num_cols, float* tile) {
  using Shape = UnitShape<kBits>;
  static constexpr int8_t kIdentity[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const typename V::template Decoder<kBits> decoder(kIdentity, 0);
  const typename V::Codebook values(codebook);
  for (int64_t col = 0; col < num_cols; col += Shape::kColumns, codes += Shape::kVectors * 64) {
    for (int part = 0; part * V::kRows < 16; ++part) {
      const typename V::Vf scale = V::LoadScales(scales + col / group * 16 + part * V::kRows);
      const auto unit = decoder.Load(codes + part * V::kRows * 4);
      float* out = tile + col * 16 + part * V::kRows;
#pragma GCC unroll 8
      for (int t = 0; t < Shape::kSteps; ++t) {
        const typename V::Vi step = decoder.Step(unit, t);
        V::StoreAll(out + (4 * t + 0) * 16, V::Mul(values.Get(step), scale));
        V::StoreAll(out + (4 * t + 1) * 16,
                    V::Mul(values.Get(V::template ShiftRight<8>(step)), scale));
        V::StoreAll(out + (4 * t + 2) * 16,
                    V::Mul(values.Get(V::template ShiftRight<16>(step)), scale));
        V::StoreAll(out + (4 * t + 3) * 16,
                    V::Mul(values.Get(V::template ShiftRight<24>(step)), scale));
      }
    }
  }
}

template <class V>
void DecodeAnyTile(const std::byte* codes, const uint16_t* scales, const float* codebook,
                   int layout_bits, int group, int64_t num_cols, float* tile) {
  if (layout_bits == 2) return DecodeTile<V, 2>(codes, scales, codebook, group, num_cols, tile);
  if (layout_bits == 3) return DecodeTile<V, 3>(codes, scales, codebook, group, num_cols, tile);
  DecodeTile<V, 4>(codes, scales, codebook, group, num_cols, tile);
}

}  // namespace
}  // namespace tq

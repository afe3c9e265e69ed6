// Matmul of weights in tile16 layout with int8 activations: the rules of docs/numerics.md
// ("TurboQuant, fast mode" and "grids, fast mode"), one leaf file per instruction set, raw pointers
// only. Lanes are output rows, so no sum ever crosses lanes. Single-threaded: cpu_matmul.cc splits
// the tiles. The layout is drawn in repack.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace tq {

// Most tokens that share one pass over the weights.
inline constexpr int64_t kMaxTokensPerPass = 8;
// Wide passes: see IntOps::matmul_wide.
inline constexpr int64_t kWideTokens = 16;
inline constexpr int64_t kWideColumns = 256;
inline constexpr int64_t kWideTiles = 8;
inline constexpr int64_t kWidePanelFloats = kWideColumns * 16 / 4 + 2 * 16 * 16;

enum class GridScaleType : uint8_t { kF16, kBf16, kF32 };

// Scales and mins of a grid (codec/grid.h), each tile after tile.
struct GridScales {
  GridScaleType type;
  const std::byte* bases;      // [tiles][num_cols / group / base_groups][16] of type
  const std::byte* min_bases;  // the same, or null
  const int8_t* factors;       // [tiles][num_cols / group][16], or null: 1
  const int8_t* min_factors;   // the same, or null
  int base_groups;             // 1 without factors
};

struct IntMatMulArgs {
  // Weights.
  const std::byte* codes;  // tile16, 64-byte aligned
  const uint16_t* scales;  // f16 [tiles][num_cols / group][16]; null: grid
  const GridScales* grid;  // or null
  const int8_t* integers;  // [16] the integer codebook, unused entries 0; not with 8 bits
  float step;              // of the integer codebook; 1 for a grid
  int layout_bits;         // 2, 3, 4 or (grids only) 8: bits of a code in memory
  int group;               // 16 (not with 3 bits), 32, 64 or 128
  int64_t num_rows;        // N; tiles are padded with rows of scale 0
  int64_t num_cols;        // K, a multiple of group
  // Activations in passes of up to 8 tokens, M = min(8, num_tokens - 8 * pass) each.
  int64_t block;        // columns per activation scale, a multiple of group
  const int8_t* q;      // pass p at q + p * 8 * K:             [K / 4][M][4]
  const float* sx;      // pass p at sx + p * 8 * (blocks):     [blocks][M]
  const int32_t* corr;  // pass p at corr + p * 8 * (K / group): [K / group][M], see IntOps
  const int32_t* qsum;  // grids: as corr, the sum of q
  float* scale_work;    // matmul: of grids, GridWorkFloats(K / group); else WideWorkFloats(tokens)
  int64_t num_tokens;   // any
  // Output.
  const float* bias;  // [N] or null
  float* y;           // [num_tokens][ldy]
  int64_t ldy;
};

// Attention's outputs over one tile of 64 positions: out = out * decay + units * sum over the
// tokens of weight * integer, for the dims of one group. The sum is exact; its float is rounded
// once, and so are both other steps (one product, one fma).
struct ValueArgs {
  const std::byte* codes;  // tile16, rows are dims, 64 columns are tokens
  const int8_t* integers;  // [16], as above
  int layout_bits;         // 2, 3, 4; 8: integer = code - 128
  int64_t num_tiles;       // of 16 dims
  // [16][num_queries][4]: 0 .. 255; with 8 bits [16][num_queries][2][4]: upper and lower 7 bits.
  const uint8_t* weights;
  int num_queries;     // 1 .. 8, with 8 bits 1 .. 4
  const float* units;  // [num_queries]
  const float* decay;  // [num_queries]
  float* const* out;   // [num_queries], each [16 * num_tiles]
};

struct IntOps {
  // y for the rows of tiles [tile_begin, tile_end).
  void (*matmul)(const IntMatMulArgs& args, int64_t tile_begin, int64_t tile_end);
  // The same for many tokens, or null. Passes of kWideTokens tokens, the last one filled up with
  // q = 0 and sx = 0, and its own layout of what depends on tokens:
  //   q     [chunks of kWideColumns columns][passes][kWideColumns / w][16][w], w = min(group, 64)
  //   sx    [passes][blocks][16]
  //   corr  [passes][groups][16]: 8 bits, the grid's offset times the sum of q; else not read
  //   qsum  [passes][groups][16]: grids with mins; else not read
  void (*matmul_wide)(const IntMatMulArgs& args, int64_t tile_begin, int64_t tile_end);
  // An f32 tile [K][16] of codebook[code] * scale from one tile, for the float path. codebook [16].
  void (*decode_tile)(const std::byte* codes, const uint16_t* scales, const float* codebook,
                      int layout_bits, int group, int64_t num_cols, float* tile);
  void (*add_values)(const ValueArgs& args);
  // The kernel multiplies by integers - min(integers): corr must start each sum at min * sum of q.
  bool unsigned_table;
  // 8-bit codes are taken as they are; false: as code - 128.
  bool unsigned_bytes;
};

// One per leaf file that is built (kernel_list.inc).
const IntOps& GetIntOps(Isa isa);

// Bytes of the codes of one tile of 16 rows. Static: leaf files get a copy of their own.
static inline int64_t CodeTileBytes(int layout_bits, int64_t num_cols) {
  return num_cols * 2 * layout_bits;
}

static inline int64_t WidePasses(int64_t num_tokens) {
  return (num_tokens + kWideTokens - 1) / kWideTokens;
}
// Bytes of q for one pass.
static inline int64_t WidePassBytes(int64_t num_cols) {
  return (num_cols + kWideColumns - 1) / kWideColumns * kWideColumns * kWideTokens;
}
// Sums and decoded columns of kWideTiles tiles.
static inline int64_t WideWorkFloats(int64_t num_tokens) {
  return kWideTiles * (WidePasses(num_tokens) * kWideTokens * 16 + kWidePanelFloats);
}

// Scales and mins of two tiles as f32.
static inline int64_t GridWorkFloats(int64_t num_groups) { return 2 * 2 * num_groups * 16; }

}  // namespace tq

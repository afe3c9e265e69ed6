// Matmul of TurboQuant weights in tile16 layout with int8 activations: the rule of docs/numerics.md
// ("TurboQuant, fast mode"), one leaf file per instruction set, raw pointers only. Lanes are output
// rows, so no sum ever crosses lanes. Single-threaded: cpu_backend.cc splits the tiles.
// The layout is drawn in repack.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace tq {

// Most tokens that share one pass over the weights.
inline constexpr int64_t kMaxTokensPerPass = 8;

struct IntMatMulArgs {
  // Weights.
  const std::byte* codes;  // tile16, 64-byte aligned
  const uint16_t* scales;  // f16 [tiles][num_cols / group][16]
  const int8_t* integers;  // [16] the integer codebook, unused entries 0
  float step;              // of the integer codebook
  int layout_bits;         // 2, 3 or 4: bits of a code in memory
  int group;               // 16 (not with 3 bits), 32, 64 or 128
  int64_t num_rows;        // N; tiles are padded with rows of scale 0
  int64_t num_cols;        // K, a multiple of group
  // Activations in passes of up to 8 tokens, M = min(8, num_tokens - 8 * pass) each.
  int64_t block;        // columns per activation scale, a multiple of group
  const int8_t* q;      // pass p at q + p * 8 * K:             [K / 4][M][4]
  const float* sx;      // pass p at sx + p * 8 * (blocks):     [blocks][M]
  const int32_t* corr;  // pass p at corr + p * 8 * (K / group): [K / group][M], see IntOps
  int64_t num_tokens;   // any
  // Output.
  const float* bias;  // [N] or null
  float* y;           // [num_tokens][ldy]
  int64_t ldy;
};

struct IntOps {
  // y for the rows of tiles [tile_begin, tile_end).
  void (*matmul)(const IntMatMulArgs& args, int64_t tile_begin, int64_t tile_end);
  // An f32 tile [K][16] of codebook[code] * scale from one tile, for the float path. codebook [16].
  void (*decode_tile)(const std::byte* codes, const uint16_t* scales, const float* codebook,
                      int layout_bits, int group, int64_t num_cols, float* tile);
  // The kernel multiplies by integers - min(integers): corr must start each sum at min * sum of q.
  bool unsigned_table;
};

// One per leaf file that is built (kernel_list.inc).
const IntOps& GetIntOps(Isa isa);

// Bytes of the codes of one tile of 16 rows. Static: leaf files get a copy of their own.
static inline int64_t CodeTileBytes(int layout_bits, int64_t num_cols) {
  return num_cols * 2 * layout_bits;
}

}  // namespace tq

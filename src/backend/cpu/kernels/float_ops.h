// FloatOps: the f32 kernels of one instruction set, as a table of plain functions on raw pointers.
// Single-threaded: cpu_backend.cc splits the work. The bits are those of docs/numerics.md.
// Highway compiles every file behind it once per instruction set (highway_targets.h), in a namespace of
// its own; float_ops.cc makes the tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace tq {

enum class FloatType : uint8_t { kF32, kF16, kBf16 };

// tile16 of a float matrix [N, K]: tiles of 16 rows, N padded with zero rows.
//   f32:       tile [K][16]           one vector of 16 rows per column
//   f16, bf16: tile [(K + 1) / 2][16][2]   dword r of vector k = columns 2k (low half), 2k + 1 of row r
inline constexpr int64_t kTileRows = 16;
inline int64_t FloatTileBytes(FloatType type, int64_t cols) {
  return type == FloatType::kF32 ? cols * 64 : (cols + 1) / 2 * 64;
}

// y[m][n] = sum_k x[m][k] * w[n][k] (+ bias[n]), for the rows n < num_rows of some tiles.
struct FloatMatMulArgs {
  FloatType type;
  const std::byte* tiles;  // 64-byte aligned; tile i at tiles + i * FloatTileBytes
  int64_t num_rows;        // N
  int64_t num_cols;        // K
  const float* x;          // [num_tokens][ldx]
  int64_t ldx;
  int64_t num_tokens;      // any
  const float* bias;       // [N] or null
  float* y;                // [num_tokens][ldy]
  int64_t ldy;
};

// One sequence's new tokens in one layer.
struct AttentionTask {
  bool f16;                   // element type of the pages: f16 or f32
  const std::byte* pages;     // KvLayout of ops.h
  int64_t page_bytes;
  const int32_t* page_table;  // page of positions [64 i, 64 i + 64)
  int64_t start_position;     // of token 0
  int num_heads;              // H
  int num_kv_heads;           // G
  int head_dim;               // D, even
  float scale;
  int window;                 // 0: none
  const float* q;             // [tokens][H][D]
  float* out;                 // [tokens][H][D]
};

struct FloatOps {
  // Activation preparation, steps 1-4, in place. signs [n]. The block rule is HadamardBlockFor(n).
  void (*rotate_row)(float* x, const float* signs, int64_t n, int hadamard_m, int64_t hadamard_pow2);
  // int8 codes of blocks of `block` columns: q [n], sx [ceil(n / block)].
  void (*quantize_row)(const float* x, int64_t n, int64_t block, int8_t* q, float* sx);

  // Tiles [tile_begin, tile_end). Blocks over up to 8 tokens at a time with the tile outside.
  void (*float_matmul)(const FloatMatMulArgs& args, int64_t tile_begin, int64_t tile_end);
  // tile[k * 16 + r] = rows[r * ld + k] for k < n: decoded rows to a piece of an f32 tile.
  void (*transpose16)(const float* rows, int64_t ld, int64_t n, float* tile);
  // out[cols] = scale * row of a tile16 matrix.
  void (*embed_row)(FloatType type, const std::byte* tiles, int64_t num_cols, int64_t row, float scale, float* out);

  void (*rms_norm_row)(const float* x, const float* w, bool plus_one, float eps, int64_t n, float* out);
  // One head; cos, sin [rotary_dim / 2].
  void (*rope_head)(float* x, int64_t rotary_dim, const float* cos, const float* sin);
  void (*glu_silu)(const float* gate, const float* up, float* out, int64_t n);
  void (*glu_gelu_tanh)(const float* gate, const float* up, float* out, int64_t n);
  void (*add)(const float* x, float* y, int64_t n);
  void (*softcap)(float* x, float cap, int64_t n);

  // k, v [D] of one head and token into slot `slot` (0..63) of a K tile and a V tile.
  void (*kv_append)(bool f16, int head_dim, std::byte* k_tile, std::byte* v_tile, int64_t slot, const float* k, const float* v);
  // Floats that attention needs as `work` (64-byte aligned), per call.
  int64_t (*attention_work)(const AttentionTask& task, int64_t num_tokens);
  // Query tokens [token_begin, token_end) of all H / G heads of one KV head.
  void (*attention)(const AttentionTask& task, int64_t token_begin, int64_t token_end, int kv_head, float* work);
};

const FloatOps& GetFloatOps(Isa isa);

}  // namespace tq

// FloatOps: the f32 kernels of one instruction set, as a table of plain functions on raw pointers.
// Single-threaded: cpu_backend.cc splits the work. The bits are those of docs/numerics.md.
// Highway compiles every file behind it once per instruction set (highway_targets.h), in a
// namespace of its own; float_ops.cc makes the tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/int_matmul.h"
#include "backend/kv_rows.h"
#include "backend/ops.h"
#include "backend/ops_index.h"
#include "backend/ops_moe.h"
#include "backend/ops_recurrent.h"
#include "backend/ops_streams.h"

namespace tq {

struct FloatOps;
enum class FloatType : uint8_t { kF32, kF16, kBf16 };

// tile16 of a float matrix [N, K]: tiles of 16 rows, N padded with zero rows.
//   f32:       tile [K][16]           one vector of 16 rows per column
//   f16, bf16: tile [(K + 1) / 2][16][2]   dword r of vector k = columns 2k (low half), 2k + 1 of
//   row r
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
  int64_t num_tokens;  // any
  const float* bias;   // [N] or null
  float* y;            // [num_tokens][ldy]
  int64_t ldy;
};

// What packed_attention builds on.
struct PackedKernels {
  const FloatOps* floats;
  const IntOps* ints;
  bool integers;  // packed tiles by the integer rule, where they have one (fast mode)
  const KvRotation* k_rotation;
  const KvRotation* v_rotation;
};

struct FloatOps {
  // Activation preparation, steps 1-4, in place. signs [n]. The block rule is HadamardBlockFor(n).
  void (*rotate_row)(float* x, const float* signs, int64_t n, int hadamard_m,
                     int64_t hadamard_pow2);
  // int8 codes of blocks of `block` columns: q [n], sx [ceil(n / block)].
  void (*quantize_row)(const float* x, int64_t n, int64_t block, int8_t* q, float* sx);

  // Tiles [tile_begin, tile_end). Blocks over up to 8 tokens at a time with the tile outside.
  void (*float_matmul)(const FloatMatMulArgs& args, int64_t tile_begin, int64_t tile_end);
  // tile[k * 16 + r] = rows[r * ld + k] for k < n: decoded rows to a piece of an f32 tile.
  void (*transpose16)(const float* rows, int64_t ld, int64_t n, float* tile);
  // tile [words][16] = the dwords of 16 rows, row_bytes apart.
  void (*transpose_rows)(const std::byte* rows, int64_t row_bytes, int64_t words, std::byte* tile);
  // The stored codes of 16 rows of a TurboQuant matrix as a tile, see RepackCodeTile (repack.h).
  // entries: of the codebook, 2, 4, 8 or 16; num_cols: whole units, for 2 entries two of them.
  void (*repack_codes)(const std::byte* rows, int64_t row_bytes, int entries, int64_t num_cols,
                       std::byte* tile);
  // out[cols] = scale * row of a tile16 matrix.
  void (*embed_row)(FloatType type, const std::byte* tiles, int64_t num_cols, int64_t row,
                    float scale, float* out);

  // w may be null.
  void (*rms_norm_row)(const float* x, const float* w, bool plus_one, float eps, int64_t n,
                       float* out);
  void (*layer_norm_row)(const LayerNormArgs& args, int64_t row);
  // The rotary dims of one head; cos, sin [rotary_dim / 2].
  void (*rope_head)(float* x, int64_t rotary_dim, const float* cos, const float* sin);
  void (*rope_head_interleaved)(float* x, int64_t rotary_dim, const float* cos, const float* sin);
  // Elements [begin, end).
  void (*glu)(const GluArgs& args, int64_t begin, int64_t end);
  void (*map_row)(const MapArgs& args, int64_t row);
  void (*scale_row)(const float* x, float factor, int64_t n, float* out);
  void (*add)(const float* x, float* y, int64_t n);
  void (*softcap)(float* x, float cap, int64_t n);

  // k [head_dim] and v [v_head_dim; 0: none] of one head and token into slot `slot` (0..63) of a K
  // tile and a V tile.
  void (*kv_append)(bool f16, int head_dim, int v_head_dim, std::byte* k_tile, std::byte* v_tile,
                    int64_t slot, const float* k, const float* v);
  // Codes and scales of a rotated vector of a packed format: the bits of KvEncode (kSearch).
  void (*encode_kv)(KvFormat format, const float* x, int64_t n, int group, uint8_t* codes,
                    uint16_t* scales);
  // Floats that attention needs as `work` (64-byte aligned), per call.
  int64_t (*attention_work)(const AttentionArgs& args, int64_t num_items);
  // Items [item_begin, item_end) of a sequence and KV head: item = token * (H / G) + head within
  // the KV head's.
  void (*attention)(const AttentionArgs& args, const SequencePlan& sequence, int64_t item_begin,
                    int64_t item_end, int kv_head, float* work);
  // The same where keys or values are packed or bf16.
  int64_t (*packed_attention_work)(const AttentionArgs& args, bool integers, int64_t num_items);
  void (*packed_attention)(const AttentionArgs& args, const PackedKernels& kernels,
                           const SequencePlan& sequence, int64_t item_begin, int64_t item_end,
                           int kv_head, float* work);
  // scores[j] of token `token` (of the step) for the candidates j in the tiles [tile_begin,
  // tile_end), up to the token's own position; other elements of these tiles may be overwritten.
  void (*index_scores)(const IndexSelectArgs& args, const SequencePlan& sequence, int64_t token,
                       int64_t tile_begin, int64_t tile_end, float* scores);

  // All tokens of a sequence; a convolution for the channels [channel_begin, channel_end).
  void (*causal_conv)(const CausalConvArgs& args, const SequencePlan& sequence,
                      int64_t channel_begin, int64_t channel_end);
  void (*delta_rule)(const DeltaRuleArgs& args, const SequencePlan& sequence, int64_t head);
  void (*mamba_scan)(const MambaScanArgs& args, const SequencePlan& sequence, int64_t head);

  // One token.
  void (*moe_combine)(const MoeCombineArgs& args, int64_t token);
  void (*residual_mix)(const ResidualMixArgs& args, int64_t token);
  void (*stream_mean)(const StreamMeanArgs& args, int64_t token);
  void (*stream_inject)(const StreamInjectArgs& args, int64_t token);
  void (*stream_gate)(const StreamGateArgs& args, int64_t token);
};

const FloatOps& GetFloatOps(Isa isa);

}  // namespace tq

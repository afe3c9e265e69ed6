// Where keys and values lie in a page: plain data and sizes. A page holds 64 tokens; for each KV
// head in order a K tile and a V tile. A token's codes depend on nothing but the token, so a page
// may be copied byte by byte and cut anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/step_plan.h"
#include "codec/kv_format.h"

namespace tq {

// One head's K or V tile of a page, `dim` values per token.
struct KvTile {
  enum class Kind : uint8_t {
    // K: [dim / 2][64 tokens][2]: dims 2i and 2i + 1 of a token are neighbours. V: [64][dim].
    kFloats,
    // Scales, then codes in tile16 (backend/cpu/repack.h). K: rows are tokens; scales f16
    // [4][groups][16], codes [4][dim]. V: rows are dims, columns the tokens; scales [groups][64],
    // codes [dim / 16][64].
    kCodeTiles,
    // [64]: scales f16 [groups], codes of `bits` bits, the first one lowest, each token in whole
    // bytes.
    kCodeRows,
  };

  KvFormat format = KvFormat::kF16;
  int dim = 0;
  int group = 0;  // packed formats
  bool is_value = false;
  Kind kind = Kind::kFloats;
  int layout_bits = 0;  // of a code in memory
  int64_t num_groups() const { return group == 0 ? 0 : dim / group; }
  // Of a token in kCodeRows.
  int64_t code_row_bytes() const { return (int64_t{dim} * layout_bits + 7) / 8; }
  int64_t scale_bytes() const { return num_groups() * kPageTokens * 2; }
  int64_t bytes() const {
    if (kind == Kind::kFloats) return int64_t{kPageTokens} * dim * layout_bits / 8;
    if (kind == Kind::kCodeTiles) return scale_bytes() + int64_t{8} * dim * layout_bits;
    return scale_bytes() + kPageTokens * code_row_bytes();
  }
};

enum class KvValues : uint8_t {
  kOwn,        // a V tile of its own
  kKeyPrefix,  // v = the first v_head_dim dims of k (MLA latents); no V tile
  kNone,       // keys only (indexers); no V tile, v_head_dim = 0
};

// The pages of one layer. Dims are even. Packed keys are rotated (signs, block Hadamard) over
// head_dim, packed values over v_head_dim; kKeyPrefix: the first v_head_dim dims and the others,
// each on its own.
struct KvLayout {
  KvSettings settings;
  int num_kv_heads = 0;
  int head_dim = 0;    // of keys and queries
  int v_head_dim = 0;  // of values and outputs
  KvValues values = KvValues::kOwn;

  // An indexer's keys are never packed: a wrong choice costs more than its few bytes.
  KvFormat k_format() const { return values == KvValues::kNone ? settings.exact : settings.k; }
  KvFormat v_format() const { return values == KvValues::kOwn ? settings.v : k_format(); }
  bool packed() const { return KvIsPacked(k_format()) || KvIsPacked(v_format()); }
  KvTile k_tile() const;
  KvTile v_tile() const;  // bytes() is 0 unless values is kOwn
  int64_t k_tile_bytes() const { return k_tile().bytes(); }
  int64_t v_tile_bytes() const { return v_tile().bytes(); }
  int64_t head_bytes() const { return k_tile_bytes() + v_tile_bytes(); }
  int64_t page_bytes() const { return head_bytes() * num_kv_heads; }

  // The first pages of a sequence are kept in settings.exact instead of a packed format (rotated
  // all the same), in memory of their own.
  int64_t num_exact_pages() const {
    return packed() ? (settings.min_tokens + kPageTokens - 1) / kPageTokens : 0;
  }
  KvLayout exact_layout() const;
};

// Where the exact pages of a layer are: page i at base + slots[i] * exact_layout().page_bytes().
struct KvExactPages {
  std::byte* base = nullptr;
  const int32_t* slots = nullptr;  // by page id
};

}  // namespace tq

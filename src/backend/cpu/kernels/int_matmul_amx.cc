// AMX: tiles of 16 tokens x 16 rows, the sums of 64 columns in one instruction. For many tokens: a
// few are served by the AVX-512 kernels. The layout of the weights is AVX-512's: a decoded unit is
// what the instruction wants, four columns of 16 rows in a line.
//
// Sums of a group leave the tile for memory and go on as vectors, one per token, in the order of
// docs/numerics.md. So a step is "store the sums of group g, start group g + 2, add g to the f32
// chains": two groups are in flight, in tiles 0 and 1.
#include "backend/cpu/kernels/int_matmul_avx512.h"

namespace tq {

extern const IntOps kIntOpsAvx512;

namespace {

// Passes whose activations of a chunk stay in the first cache while all tiles use them.
constexpr int64_t kPassesAtOnce = 4;
constexpr int64_t kPassBytes = kWideTokens * kWideColumns;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Sums in tiles 0 and 1, q in 4 and 5, weights in 6 and 7.
TQ_INLINE void ConfigureTiles(int columns) {
  TileConfig config;
  for (const int sums : {0, 1}) {
    config.row_bytes[sums] = 64;
    config.rows[sums] = 16;
    config.row_bytes[4 + sums] = static_cast<uint16_t>(columns);
    config.rows[4 + sums] = 16;
    config.row_bytes[6 + sums] = 64;
    config.rows[6 + sums] = static_cast<uint8_t>(columns / 4);
  }
  // GCC 12 believes that the instruction reads 8 bytes, and drops what else was stored.
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// One tile's weights of a chunk of columns. Groups are filled up to an even number.
struct alignas(64) Panel {
  int8_t codes[kWideColumns * 16];  // [columns / 4][16 rows][4]
  float scales[16 * 16];            // [groups][16]
  float mins[16 * 16];
};
static_assert(sizeof(Panel) == kWidePanelFloats * sizeof(float));

// A chunk of columns.
struct Chunk {
  int64_t col;
  int64_t num_cols;
  int64_t first_group;
  int num_groups;
  int num_blocks;
  int groups_per_block;
};

Chunk ChunkAt(const IntMatMulArgs& a, int64_t col) {
  const int64_t left = a.num_cols - col;
  Chunk chunk;
  chunk.col = col;
  chunk.num_cols = left < kWideColumns ? left : kWideColumns;
  chunk.first_group = col / a.group;
  chunk.num_groups = static_cast<int>(chunk.num_cols / a.group);
  chunk.groups_per_block = static_cast<int>(a.block / a.group);
  chunk.num_blocks = (chunk.num_groups + chunk.groups_per_block - 1) / chunk.groups_per_block;
  return chunk;
}

// next: what the same tile slot will want after this.
template <int kBits>
TQ_INLINE void DecodeCodes(const IntMatMulArgs& a, const std::byte* codes, const std::byte* next,
                           int64_t num_cols, int8_t* out) {
  using Shape = UnitShape<kBits>;
  const Avx512Decoder<kBits> decoder(a.integers, SmallestInteger(a.integers));
  const __m512i smallest =
      _mm512_set1_epi8(static_cast<char>(kBits == 8 ? 0 : SmallestInteger(a.integers)));
  constexpr int kUnitBytes = Shape::kVectors * 64;
#pragma GCC unroll 1
  for (int64_t col = 0; col < num_cols; col += Shape::kColumns) {
#pragma GCC unroll 3
    for (int v = 0; v < Shape::kVectors; ++v) __builtin_prefetch(next + v * 64, 0, 2);
    const auto unit = decoder.Load(codes);
#pragma GCC unroll 8
    for (int t = 0; t < Shape::kSteps; ++t) {
      __m512i step = decoder.Step(unit, t);
      if constexpr (kBits != 8) step = _mm512_add_epi8(step, smallest);
      _mm512_store_si512(out + t * 64, step);
    }
    codes += kUnitBytes;
    next += kUnitBytes;
    out += Shape::kSteps * 64;
  }
}

void DecodeScales(const IntMatMulArgs& a, int64_t tile, const Chunk& chunk, Panel& panel) {
  const int64_t all_groups = a.num_cols / a.group;
  const int64_t begin = chunk.first_group;
  const int64_t end = begin + chunk.num_groups;
  if (a.grid == nullptr) {
    const auto* scales = reinterpret_cast<const std::byte*>(a.scales + tile * all_groups * 16);
    return ExpandScales<Avx512>(GridScaleType::kF16, scales, nullptr, begin, end, 1, panel.scales);
  }
  const auto expand = [&](const std::byte* bases, const int8_t* factors, float* out) {
    ExpandScales<Avx512>(a.grid->type, bases + tile * GridBaseBytes(a),
                         factors == nullptr ? nullptr : factors + tile * all_groups * 16, begin,
                         end, a.grid->base_groups, out);
  };
  expand(a.grid->bases, a.grid->factors, panel.scales);
  if (a.grid->min_bases != nullptr) expand(a.grid->min_bases, a.grid->min_factors, panel.mins);
}

void DecodePanel(const IntMatMulArgs& a, int64_t tile, const Chunk& chunk, Panel& panel) {
  const auto bytes_of = [&](int64_t columns) { return columns * 2 * a.layout_bits; };
  const std::byte* codes = a.codes + tile * bytes_of(a.num_cols);
  const std::byte* next = chunk.col + kWideColumns < a.num_cols
                              ? codes + bytes_of(chunk.col + kWideColumns)
                              : codes + bytes_of(a.num_cols * kWideTiles);
  codes += bytes_of(chunk.col);
  if (a.layout_bits == 2) DecodeCodes<2>(a, codes, next, chunk.num_cols, panel.codes);
  if (a.layout_bits == 3) DecodeCodes<3>(a, codes, next, chunk.num_cols, panel.codes);
  if (a.layout_bits == 4) DecodeCodes<4>(a, codes, next, chunk.num_cols, panel.codes);
  if (a.layout_bits == 8) DecodeCodes<8>(a, codes, next, chunk.num_cols, panel.codes);
  DecodeScales(a, tile, chunk, panel);
  if (chunk.num_groups % 2 == 0) return;
  __builtin_memset(panel.codes + chunk.num_cols * 16, 0, static_cast<size_t>(a.group) * 16);
  __builtin_memset(panel.scales + chunk.num_groups * 16, 0, 64);
  __builtin_memset(panel.mins + chunk.num_groups * 16, 0, 64);
}

// Activations of a chunk, from some pass on.
struct Tokens {
  const int8_t* q;
  const float* sx;      // of the chunk's first block
  const int32_t* corr;  // of its first group
  const int32_t* qsum;
  int64_t sx_stride;   // from pass to pass
  int64_t sum_stride;  // of corr and qsum
};

template <int kGroup, bool kHasMin, bool kBytes>
struct Kernel {
  static constexpr int kColumns = kGroup < 64 ? kGroup : 64;  // of one dot
  static constexpr int kStep = 16 * kGroup;                   // bytes of q, and of codes

  // A dot of kSums = 0 or 1: numbers of tiles are part of the instruction.
#define TQ_DOT(sums, left, right, x, w) \
  _tile_loadd(left, x, kColumns);       \
  _tile_loadd(right, w, 64);            \
  if constexpr (kBytes) {               \
    _tile_dpbsud(sums, left, right);    \
  } else {                              \
    _tile_dpbssd(sums, left, right);    \
  }
  TQ_INLINE void Start0(const int8_t* q, const int8_t* codes) {
    _tile_zero(0);
    TQ_DOT(0, 4, 6, q, codes)
    if constexpr (kGroup == 128) {
      TQ_DOT(0, 4, 6, q + 1024, codes + 1024)
    }
  }
  TQ_INLINE void Start1(const int8_t* q, const int8_t* codes) {
    _tile_zero(1);
    TQ_DOT(1, 5, 7, q, codes)
    if constexpr (kGroup == 128) {
      TQ_DOT(1, 5, 7, q + 1024, codes + 1024)
    }
  }
#undef TQ_DOT

  TQ_INLINE void Flush(const int32_t* sums, const Panel& panel, int group, const int32_t* corr,
                       const int32_t* qsum, __m512 (&p)[16]) {
    const __m512 d = _mm512_load_ps(panel.scales + group * 16);
    __m512 least = _mm512_setzero_ps();
    if constexpr (kHasMin) least = _mm512_load_ps(panel.mins + group * 16);
#pragma GCC unroll 16
    for (int m = 0; m < 16; ++m) {
      __m512i sum = _mm512_load_si512(sums + m * 16);
      if constexpr (kBytes) sum = _mm512_add_epi32(sum, _mm512_set1_epi32(corr[m]));
      if constexpr (kHasMin) {
        p[m] = _mm512_fmadd_ps(least, _mm512_cvtepi32_ps(_mm512_set1_epi32(qsum[m])), p[m]);
      }
      p[m] = _mm512_fmadd_ps(d, _mm512_cvtepi32_ps(sum), p[m]);
    }
  }

  TQ_INLINE void CloseBlock(const float* sx, float* y, __m512 (&p)[16]) {
#pragma GCC unroll 16
    for (int m = 0; m < 16; ++m) {
      const __m512 sum = _mm512_load_ps(y + m * 16);
      _mm512_store_ps(y + m * 16, _mm512_fmadd_ps(_mm512_set1_ps(sx[m]), p[m], sum));
      p[m] = _mm512_setzero_ps();
    }
  }

  // y[pass][16 tokens][16 rows] += the chunk's blocks.
  static __attribute__((noinline)) void Run(const Chunk& chunk, const Panel& panel, Tokens tokens,
                                            int64_t num_passes, float* y) {
    alignas(64) int32_t sums[2][256];
    const int groups = (chunk.num_groups + 1) / 2 * 2;
    const int real = chunk.num_groups;
    Start0(tokens.q, panel.codes);
    Start1(tokens.q + kStep, panel.codes + kStep);
#pragma GCC unroll 1
    for (int64_t pass = 0; pass < num_passes; ++pass) {
      const int8_t* next_pass = tokens.q + (pass + 1 < num_passes ? kPassBytes : 0);
      const float* sx = tokens.sx;
      __m512 p[16];
#pragma GCC unroll 16
      for (int m = 0; m < 16; ++m) p[m] = _mm512_setzero_ps();
      int closing = chunk.groups_per_block;  // the group before which the next block ends
#pragma GCC unroll 1
      for (int g = 0; g < groups; g += 2) {
        const bool last = g + 2 == groups;
        const int8_t* q = last ? next_pass : tokens.q + (g + 2) * kStep;
        const int8_t* codes = last ? panel.codes : panel.codes + (g + 2) * kStep;
        _tile_stored(0, sums[0], 64);
        Start0(q, codes);
        Flush(sums[0], panel, g, tokens.corr + g * 16, tokens.qsum + g * 16, p);
        if (g + 1 == closing) {
          CloseBlock(sx, y, p);
          sx += 16;
          closing += chunk.groups_per_block;
        }
        _tile_stored(1, sums[1], 64);
        Start1(q + kStep, codes + kStep);
        if (g + 1 == real) break;  // the second one only fills up
        Flush(sums[1], panel, g + 1, tokens.corr + (g + 1) * 16, tokens.qsum + (g + 1) * 16, p);
        if (g + 2 == closing) {
          CloseBlock(sx, y, p);
          sx += 16;
          closing += chunk.groups_per_block;
        }
      }
      if (closing != real + chunk.groups_per_block) CloseBlock(sx, y, p);
      y += 256;
      tokens.q += kPassBytes;
      tokens.sx += tokens.sx_stride;
      tokens.corr += tokens.sum_stride;
      tokens.qsum += tokens.sum_stride;
    }
  }
};

using ChunkFunction = void (*)(const Chunk&, const Panel&, Tokens, int64_t, float*);

template <bool kHasMin, bool kBytes>
ChunkFunction FunctionForGroup(int group) {
  return group == 16   ? Kernel<16, kHasMin, kBytes>::Run
         : group == 32 ? Kernel<32, kHasMin, kBytes>::Run
         : group == 64 ? Kernel<64, kHasMin, kBytes>::Run
                       : Kernel<128, kHasMin, kBytes>::Run;
}

ChunkFunction FunctionFor(const IntMatMulArgs& a) {
  const bool has_min = a.grid != nullptr && a.grid->min_bases != nullptr;
  if (a.layout_bits == 8) {
    return has_min ? FunctionForGroup<true, true>(a.group) : FunctionForGroup<false, true>(a.group);
  }
  return has_min ? FunctionForGroup<true, false>(a.group) : FunctionForGroup<false, false>(a.group);
}

void FinishTile(const IntMatMulArgs& a, int64_t tile, const float* sums) {
  const int64_t row = tile * 16;
  const int64_t left = a.num_rows - row;
  const int rows = left < 16 ? static_cast<int>(left) : 16;
  const __m512 step = _mm512_set1_ps(a.step);
  for (int64_t token = 0; token < a.num_tokens; ++token) {
    __m512 value = _mm512_mul_ps(_mm512_load_ps(sums + token * 16), step);
    if (a.bias != nullptr) value = _mm512_add_ps(value, Avx512::LoadRows(a.bias + row, rows));
    Avx512::StoreRows(a.y + token * a.ldy + row, value, rows);
  }
}

// Some tiles at a time, for all columns and tokens: activations are read once for them, codes once
// for all tokens.
void SomeTiles(const IntMatMulArgs& a, ChunkFunction run, int64_t tile, int64_t num_tiles) {
  const int64_t passes = WidePasses(a.num_tokens);
  auto* panels = reinterpret_cast<Panel*>(a.scale_work + kWideTiles * passes * 256);
  const int64_t groups = a.num_cols / a.group;
  const int64_t blocks = (a.num_cols + a.block - 1) / a.block;
  const int64_t tile_floats = passes * 256;
  __builtin_memset(a.scale_work, 0, static_cast<size_t>(num_tiles * tile_floats) * sizeof(float));
  for (int64_t col = 0; col < a.num_cols; col += kWideColumns) {
    const Chunk chunk = ChunkAt(a, col);
    for (int64_t i = 0; i < num_tiles; ++i) DecodePanel(a, tile + i, chunk, panels[i]);
    for (int64_t pass = 0; pass < passes; pass += kPassesAtOnce) {
      const int64_t left = passes - pass;
      const int64_t n = left < kPassesAtOnce ? left : kPassesAtOnce;
      const int64_t sums = (pass * groups + chunk.first_group) * 16;
      const Tokens tokens{a.q + col * passes * 16 + pass * kPassBytes,
                          a.sx + (pass * blocks + col / a.block) * 16,
                          a.corr + sums,
                          a.qsum + sums,
                          blocks * 16,
                          groups * 16};
      for (int64_t i = 0; i < num_tiles; ++i) {
        run(chunk, panels[i], tokens, n, a.scale_work + i * tile_floats + pass * 256);
      }
    }
  }
  for (int64_t i = 0; i < num_tiles; ++i) FinishTile(a, tile + i, a.scale_work + i * tile_floats);
}

void MatMulWide(const IntMatMulArgs& a, int64_t tile_begin, int64_t tile_end) {
  ConfigureTiles(a.group < 64 ? a.group : 64);
  const ChunkFunction run = FunctionFor(a);
  for (int64_t tile = tile_begin; tile < tile_end; tile += kWideTiles) {
    const int64_t left = tile_end - tile;
    SomeTiles(a, run, tile, left < kWideTiles ? left : kWideTiles);
  }
  _tile_release();
}

void MatMul(const IntMatMulArgs& a, int64_t tile_begin, int64_t tile_end) {
  kIntOpsAvx512.matmul(a, tile_begin, tile_end);
}

void DecodeTile(const std::byte* codes, const uint16_t* scales, const float* codebook,
                int layout_bits, int group, int64_t num_cols, float* tile) {
  kIntOpsAvx512.decode_tile(codes, scales, codebook, layout_bits, group, num_cols, tile);
}

void AddValues(const ValueArgs& args) { kIntOpsAvx512.add_values(args); }

}  // namespace

extern const IntOps kIntOpsAmx;
const IntOps kIntOpsAmx = {MatMul,
                           MatMulWide,
                           DecodeTile,
                           AddValues,
                           /*unsigned_table=*/true,
                           /*unsigned_bytes=*/true};

}  // namespace tq

// One tile of 64 positions whose keys or values are packed, for up to eight queries. Three kinds of
// tiles, chosen for keys and values each: integers (codes meet an int8 query, or weights in 8 bits,
// in the integer kernels), plain floats (f16, bf16, f32, and the exact first pages), and codes
// without an integer kernel, made f32 once for all queries of a task. Part of packed_attention.cc.

#if defined(TQ_CPU_PACKED_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TQ_CPU_PACKED_TILE_INL_H_
#undef TQ_CPU_PACKED_TILE_INL_H_
#else
#define TQ_CPU_PACKED_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/attention_query-inl.h"
#include "backend/cpu/kernels/attention_tile-inl.h"
#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/vec_math-inl.h"
#include "backend/kv_rows.h"
#include "backend/ops.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kSegmentTiles = kSegment / kTile;

// What a call knows of its pages, packed and exact, and the memory it works in.
struct Packed {
  const AttentionArgs& args;
  const PackedKernels& kernels;
  const SequencePlan& sequence;
  int kv_head;
  KvLayout layout[2] = {};  // packed, exact
  KvTile k[2] = {};
  KvTile v[2] = {};
  int64_t page_bytes[2] = {};
  int64_t head_bytes[2] = {};
  int64_t k_bytes[2] = {};
  int64_t num_exact = {};
  bool integer_keys = {};
  bool integer_values = {};
  // Integers of what the keys' kernel leaves out of its table.
  int omitted = {};
  // Memory.
  float* slots = {};      // [8]: scores, then the output of a segment
  int64_t slot = {};      // floats of one
  uint8_t* weights = {};  // of values: [16][queries][4], twice that for int8
  float* k_floats = {};   // [8 tiles] of the segment, where codes are made f32
  float* v_floats = {};
  uint32_t k_ready = {};  // tiles of them that are made
  uint32_t v_ready = {};
  uint8_t* codes = {};  // of a row
  float* scales = {};

  struct Place {
    const std::byte* k;
    const std::byte* v;
    int exact;  // index of layout, k, v
  };
  HWY_INLINE Place At(int64_t tile) const {
    const int32_t page = sequence.pages[static_cast<size_t>(tile)];
    const int exact = tile < num_exact ? 1 : 0;
    const std::byte* base = exact == 1 ? args.exact.base + args.exact.slots[page] * page_bytes[1]
                                       : args.pages + page * page_bytes[0];
    const std::byte* head = base + kv_head * head_bytes[exact];
    return {head, head + k_bytes[exact], exact};
  }
};

// Codes to f32 keys [dim / 2][64][2].
HWY_NOINLINE void DecodeKeys(const Packed& p, const KvTile& tile, const std::byte* bytes,
                             int64_t num_rows, float* row, float* out) {
  for (int64_t j = 0; j < num_rows; ++j) {
    LoadKvRow(tile, bytes, j, p.codes, p.scales, row);
    for (int64_t d = 0; d < tile.dim; d += 2) std::memcpy(out + d * kTile + 2 * j, row + d, 8);
  }
}

// Codes, or the floats of keys that hold the values, to f32 values [64][dim].
HWY_NOINLINE void DecodeValues(const Packed& p, const KvTile& tile, const std::byte* bytes,
                               int64_t num_rows, float* row, float* out) {
  const int64_t dim = p.args.layout.v_head_dim;
  for (int64_t j = 0; j < num_rows; ++j) {
    LoadKvRow(tile, bytes, j, p.codes, p.scales, row);
    std::memcpy(out + j * dim, row, static_cast<size_t>(dim) * sizeof(float));
  }
}

// A tile that float kernels read: where it is or a decoded copy.
struct FloatTile {
  KvFormat format;
  const std::byte* bytes;
};

// Positions of a tile that are written: all before the step's last.
HWY_INLINE int64_t NumRows(const Packed& p, int64_t tile) {
  const int64_t end = p.sequence.start_position + p.sequence.num_tokens;
  return std::min(kTile, end - tile * kTile);
}

HWY_INLINE FloatTile KeyFloats(Packed& p, const Packed::Place& at, int64_t tile) {
  const KvTile& k = p.k[at.exact];
  if (k.kind == KvTile::Kind::kFloats) return {k.format, at.k};
  const int64_t i = tile % kSegmentTiles;
  float* out = p.k_floats + i * kTile * k.dim;
  if ((p.k_ready >> i & 1) == 0) {
    DecodeKeys(p, k, at.k, NumRows(p, tile), p.scales + k.num_groups(), out);
    p.k_ready |= uint32_t{1} << i;
  }
  return {KvFormat::kF32, reinterpret_cast<const std::byte*>(out)};
}

HWY_INLINE FloatTile ValueFloats(Packed& p, const Packed::Place& at, int64_t tile) {
  const bool own = p.args.layout.values == KvValues::kOwn;
  const KvTile& v = own ? p.v[at.exact] : p.k[at.exact];
  if (own && v.kind == KvTile::Kind::kFloats) return {v.format, at.v};
  const int64_t i = tile % kSegmentTiles;
  float* out = p.v_floats + i * kTile * p.args.layout.v_head_dim;
  if ((p.v_ready >> i & 1) == 0) {
    DecodeValues(p, v, own ? at.v : at.k, NumRows(p, tile), p.scales + v.num_groups(), out);
    p.v_ready |= uint32_t{1} << i;
  }
  return {KvFormat::kF32, reinterpret_cast<const std::byte*>(out)};
}

// body(tile) with the element type that the format has.
template <class Body>
HWY_INLINE void WithTile(const FloatTile& tile, int64_t dim, const Body& body) {
  if (tile.format == KvFormat::kF16) {
    body(
        Tile<hwy::float16_t>{reinterpret_cast<const hwy::float16_t*>(tile.bytes), dim, tile.bytes});
  } else if (tile.format == KvFormat::kBf16) {
    body(Tile<Bf16>{reinterpret_cast<const Bf16*>(tile.bytes), dim, tile.bytes});
  } else {
    body(Tile<float>{reinterpret_cast<const float*>(tile.bytes), dim, tile.bytes});
  }
}

// Queries that share loaded tiles, with their int8 form (where keys are integers) as the integer
// kernel wants it: [dim / 4][num][4], scales [blocks][num], [groups][num] what sums start with.
struct Group {
  Query* queries[kMaxQueries];
  int num;
  const int8_t* q;
  const float* sx;
  const int32_t* corr;
};

// All queries of the group; lanes of positions that are not written hold anything.
HWY_INLINE void IntegerScores(const Packed& p, const Group& group, const std::byte* k) {
  const KvTile& tile = p.k[0];
  const KvIntegers& integers = KvIntegersOf(tile.format);
  const IntMatMulArgs args{.codes = k + tile.scale_bytes(),
                           .scales = reinterpret_cast<const uint16_t*>(k),
                           .grid = nullptr,
                           .integers = integers.integers,
                           .step = integers.step,
                           .layout_bits = tile.layout_bits,
                           .group = tile.group,
                           .num_rows = kTile,
                           .num_cols = tile.dim,
                           .block = kKvQueryBlock,
                           .q = group.q,
                           .sx = group.sx,
                           .corr = group.corr,
                           .qsum = nullptr,
                           .scale_work = nullptr,
                           .num_tokens = group.num,
                           .bias = nullptr,
                           .y = group.queries[0]->s,
                           .ldy = p.slot};
  p.kernels.ints->matmul(args, 0, kTile / 16);
  const VecTag d;
  const Vec scale = hn::Set(d, p.args.scale);
  for (int i = 0; i < group.num; ++i) {
    float* s = group.queries[i]->s;
    TQ_UNROLL
    for (int v = 0; v < kTileVecs; ++v) {
      hn::Store(hn::Mul(hn::Load(d, s + v * kLanes), scale), d, s + v * kLanes);
    }
  }
}

// Four weights of step t of a query: at u + t * stride.
HWY_INLINE void SpreadWeights(const uint8_t* codes, int64_t stride, uint8_t* u) {
  for (int64_t t = 0; t < kTile / 4; ++t) std::memcpy(u + t * stride, codes + t * 4, 4);
}

// The probabilities times the scales of one group of values, in integers. Returns what a unit is
// worth, without the codebook's step.
HWY_INLINE float QuantizeWeights(const float* probabilities, const uint16_t* scales, bool halves,
                                 int64_t stride, uint8_t* u) {
  const VecTag d;
  const hn::Rebind<hwy::float16_t, VecTag> d16;
  const hn::Rebind<uint8_t, VecTag> d8;
  const float range = halves ? KvWeightRange(KvFormat::kInt8) : KvWeightRange(KvFormat::kTq4);
  Vec w[kTileVecs];
  Vec max_v = hn::Zero(d);
  TQ_UNROLL
  for (int v = 0; v < kTileVecs; ++v) {
    const Vec p = hn::Load(d, probabilities + v * kLanes);
    const Vec scale = hn::PromoteTo(
        d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(scales) + v * kLanes));
    // Positions that are not visible may hold any scale.
    w[v] = hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), hn::Mul(p, scale));
    max_v = hn::Max(max_v, w[v]);
  }
  const float max = hn::GetLane(hn::MaxOfLanes(d, max_v));
  const bool empty = max < kMinActivation;
  const Vec factor = hn::Set(d, empty ? 0.0f : range / max);
  HWY_ALIGN uint8_t low[kTile];
  HWY_ALIGN uint8_t high[kTile];
  TQ_UNROLL
  for (int v = 0; v < kTileVecs; ++v) {
    const auto code = hn::NearestInt(hn::Mul(w[v], factor));
    if (halves) {
      const hn::Rebind<int32_t, VecTag> d32;
      hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<7>(code)), d8, high + v * kLanes);
      hn::StoreU(hn::DemoteTo(d8, hn::And(code, hn::Set(d32, 127))), d8, low + v * kLanes);
    } else {
      hn::StoreU(hn::DemoteTo(d8, code), d8, low + v * kLanes);
    }
  }
  if (halves) {
    SpreadWeights(high, stride, u);
    SpreadWeights(low, stride, u + 4);
  } else {
    SpreadWeights(low, stride, u);
  }
  return empty ? 0.0f : max;
}

HWY_INLINE void IntegerValues(const Packed& p, const std::byte* v, Query* const* queries,
                              int num_queries) {
  const KvTile& tile = p.v[0];
  const bool halves = tile.format == KvFormat::kInt8;
  const KvIntegers& integers = KvIntegersOf(tile.format);
  const float unit = integers.step / KvWeightRange(tile.format);
  const int most = halves ? kMaxQueries / 2 : kMaxQueries;
  const int64_t tiles_per_group = tile.group / 16;
  const int64_t tile_bytes = kTile * 2 * tile.layout_bits;
  float back[kMaxQueries];
  float alpha[kMaxQueries];
  float* out[kMaxQueries];
  for (int first = 0; first < num_queries; first += most) {
    const int num = std::min(most, num_queries - first);
    const int64_t stride = int64_t{num} * (halves ? 8 : 4);
    for (int64_t g = 0; g < tile.num_groups(); ++g) {
      const auto* scales = reinterpret_cast<const uint16_t*>(v) + g * kTile;
      for (int i = 0; i < num; ++i) {
        const Query& query = *queries[first + i];
        back[i] =
            QuantizeWeights(query.s, scales, halves, stride, p.weights + i * (halves ? 8 : 4)) *
            unit;
        alpha[i] = query.alpha;
        out[i] = query.segment.o + g * tile.group;
      }
      p.kernels.ints->add_values(
          {.codes = v + tile.scale_bytes() + g * tiles_per_group * tile_bytes,
           .integers = integers.integers,
           .layout_bits = tile.layout_bits,
           .num_tiles = tiles_per_group,
           .weights = p.weights,
           .num_queries = num,
           .units = back,
           .decay = alpha,
           .out = out});
    }
  }
}

// A tile's bytes in the next page, fetched while this one is used.
HWY_INLINE void FetchNext(const std::byte* begin, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) hwy::Prefetch(begin + i);
}

// One tile for the queries [from, to) of the group; mask: 0, or the positions that all of them see.
HWY_INLINE void PackedTile(Packed& p, const Group& group, int from, int to, int64_t tile,
                           uint64_t mask, const Packed::Place& at, const Packed::Place& next) {
  Query* const* queries = group.queries + from;
  const int num = to - from;
  const int64_t begin = tile * kTile;
  if (p.integer_keys && at.exact == 0) {
    FetchNext(next.k, p.k_bytes[next.exact]);
    IntegerScores(p, group, at.k);
  } else {
    WithTile(KeyFloats(p, at, tile), p.args.layout.head_dim, [&](const auto& keys) HWY_ATTR {
      if (mask != 0) return MaskedScores(keys, mask, p.args.scale, queries, num);
      const int64_t first = Visible(*queries[0], begin).begin;
      const int64_t last = Visible(*queries[num - 1], begin).end;
      Scores(keys, queries, num, static_cast<int>(first / kLanes),
             static_cast<int>((last + kLanes - 1) / kLanes), p.args.scale);
    });
  }
  for (int i = 0; i < num; ++i) {
    if (mask != 0) {
      MaskedSoftmax(mask, *queries[i]);
    } else {
      const Span span = Visible(*queries[i], begin);
      Softmax(*queries[i], span.begin, span.end);
    }
  }
  if (p.integer_values && at.exact == 0) {
    FetchNext(next.v, p.head_bytes[next.exact] - p.k_bytes[next.exact]);
    return IntegerValues(p, at.v, queries, num);
  }
  WithTile(ValueFloats(p, at, tile), p.args.layout.v_head_dim, [&](const auto& values) HWY_ATTR {
    if (mask != 0) return OutputMask(values, mask, queries, num);
    OutputSpans(values, begin, queries, num);
  });
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

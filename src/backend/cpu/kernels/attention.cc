// Attention over the pages of one KV head: tiles of 64 positions, segments of 512 with their own
// running maximum, sum and output, merged in index order. Up to eight (token, head) queries share
// every loaded tile. Scores: lanes are tokens (even and odd dims alternate, as the K tile stores
// them). Output: lanes are dims, one chain over the visible tokens, ascending.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/attention.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/attention_query-inl.h"
#include "backend/cpu/kernels/attention_tile-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

// One tile for the queries that see it (consecutive, both bounds of their spans ascend).
template <class T>
HWY_INLINE void TileStep(const Tile<T>& keys, const Tile<T>& values, int64_t tile_begin,
                         float scale, Query* const* queries, int num_queries) {
  const int64_t first = Visible(*queries[0], tile_begin).begin;
  const int64_t last = Visible(*queries[num_queries - 1], tile_begin).end;
  Scores(keys, queries, num_queries, static_cast<int>(first / kLanes),
         static_cast<int>((last + kLanes - 1) / kLanes), scale);
  for (int i = 0; i < num_queries; ++i) {
    const Span span = Visible(*queries[i], tile_begin);
    Softmax(*queries[i], span.begin, span.end);
  }
  OutputSpans(values, tile_begin, queries, num_queries);
}

// One tile for queries that see the same positions: those in `mask`.
template <class T>
HWY_INLINE void MaskedTileStep(const Tile<T>& keys, const Tile<T>& values, uint64_t mask,
                               float scale, Query* const* queries, int num_queries) {
  MaskedScores(keys, mask, scale, queries, num_queries);
  for (int i = 0; i < num_queries; ++i) MaskedSoftmax(mask, *queries[i]);
  OutputMask(values, mask, queries, num_queries);
}

// Element (dim pair, token) of a K tile to (token, dim pair) of a V tile.
template <class T>
HWY_NOINLINE void KeysToValues(const T* k, int64_t v_dim, T* v) {
  using Pair = std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>;
  constexpr int64_t kLanesHere = 16 / static_cast<int64_t>(sizeof(Pair));
  const hn::CappedTag<Pair, kLanesHere> d;
  const hn::CappedTag<uint64_t, 2> d64;
  const auto* from = reinterpret_cast<const Pair*>(k);
  auto* to = reinterpret_cast<Pair*>(v);
  const int64_t pairs = v_dim / 2;
  int64_t i = 0;
  for (; i + kLanesHere <= pairs; i += kLanesHere) {
    for (int64_t j = 0; j < kTile; j += kLanesHere) {
      const Pair* in = from + i * kTile + j;
      Pair* out = to + j * pairs + i;
      const auto a = hn::LoadU(d, in), b = hn::LoadU(d, in + kTile);
      if constexpr (kLanesHere == 2) {
        hn::StoreU(hn::InterleaveLower(d, a, b), d, out);
        hn::StoreU(hn::InterleaveUpper(d, a, b), d, out + pairs);
      } else {
        const auto c = hn::LoadU(d, in + 2 * kTile), e = hn::LoadU(d, in + 3 * kTile);
        const auto low_ab = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
        const auto high_ab = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
        const auto low_ce = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
        const auto high_ce = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low_ab, low_ce)), d, out);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low_ab, low_ce)), d, out + pairs);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, high_ab, high_ce)), d, out + 2 * pairs);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, high_ab, high_ce)), d, out + 3 * pairs);
      }
    }
  }
  for (; i < pairs; ++i) {
    for (int64_t j = 0; j < kTile; ++j) to[j * pairs + i] = from[i * kTile + j];
  }
}

// One KV head of one sequence.
template <class T>
struct Context {
  const AttentionArgs& args;
  const SequencePlan& sequence;
  int kv_head;
  T* values;       // kKeyPrefix: the V tiles of the current segment, [8][64][v_head_dim],
  uint32_t ready;  // and which of them are made, one bit each

  HWY_INLINE const std::byte* KeyTile(int64_t position) const {
    return args.pages + sequence.pages[position / kTile] * args.layout.page_bytes() +
           kv_head * args.layout.head_bytes();
  }
  HWY_INLINE const T* ValueTile(int64_t position, const std::byte* k_tile) {
    const KvLayout& layout = args.layout;
    if (layout.values == KvValues::kOwn) {
      return reinterpret_cast<const T*>(k_tile + layout.k_tile_bytes());
    }
    const int64_t tile = position % kSegment / kTile;
    T* v = values + tile * kTile * layout.v_head_dim;
    if ((ready >> tile & 1) == 0) {
      KeysToValues(reinterpret_cast<const T*>(k_tile), layout.v_head_dim, v);
      ready |= uint32_t{1} << tile;
    }
    return v;
  }
};

// One segment for up to kMaxQueries queries, in token order.
template <class T>
HWY_INLINE void AttendSegment(Context<T>& context, Query* const* queries, int num_queries,
                              int64_t segment_begin) {
  const KvLayout& layout = context.args.layout;
  const int64_t last = queries[num_queries - 1]->end;
  const int64_t end = std::min(segment_begin + kSegment, last);
  int64_t tile = std::max(segment_begin, queries[0]->begin / kTile * kTile);
  if (tile >= end) return;
  for (int i = 0; i < num_queries; ++i) {
    Query& query = *queries[i];
    query.segment.max = kMinusInfinity;
    query.segment.sum = 0.0f;
    query.in_segment = false;
    std::fill_n(query.segment.o, PaddedDim(layout.v_head_dim), 0.0f);
  }
  for (; tile < end; tile += kTile) {
    int from = 0, to = num_queries;
    while (queries[from]->end <= tile) ++from;
    while (queries[to - 1]->begin >= tile + kTile) --to;
    if (from >= to) continue;
    uint64_t mask = 0;
    if (queries[0]->selected != nullptr) {
      const Span span = Visible(*queries[0], tile);
      mask = queries[0]->selected[tile / kTile] & ~uint64_t{0} << span.begin &
             ~uint64_t{0} >> (kTile - span.end);
      if (mask == 0) continue;
    }
    const std::byte* k = context.KeyTile(tile);
    const T* v = context.ValueTile(tile, k);
    const std::byte* next = tile + kTile < last ? context.KeyTile(tile + kTile) : k;
    const Tile<T> keys = {reinterpret_cast<const T*>(k), layout.head_dim,
                          reinterpret_cast<const std::byte*>(v)};
    const Tile<T> values = {v, layout.v_head_dim, next};
    if (mask != 0) {
      MaskedTileStep(keys, values, mask, context.args.scale, queries, num_queries);
    } else {
      TileStep(keys, values, tile, context.args.scale, queries + from, to - from);
    }
  }
  for (int i = 0; i < num_queries; ++i) MergeSegment(*queries[i], layout.v_head_dim);
}

// All segments of some queries, in token order; `slots` lends each query of a group its memory.
template <class T>
HWY_INLINE void AttendBlock(Context<T>& context, Query* queries, int64_t count, float* slots) {
  const int64_t dims = context.args.layout.v_head_dim;
  const int64_t end = queries[count - 1].end;
  for (int64_t s = queries[0].begin / kSegment * kSegment; s < end; s += kSegment) {
    context.ready = 0;
    for (int64_t first = 0; first < count;) {
      const int64_t group_end = GroupEnd(queries, first, count);
      Query* group[kMaxQueries];
      for (int64_t i = first; i < group_end; ++i) {
        float* slot = slots + (i - first) * (PaddedDim(dims) + kTile);
        queries[i].s = slot;
        queries[i].segment.o = slot + kTile;
        group[i - first] = &queries[i];
      }
      AttendSegment(context, group, static_cast<int>(group_end - first), s);
      first = group_end;
    }
  }
  for (int64_t i = 0; i < count; ++i) Finish(queries[i], dims);
}

// Memory of a call: slots of a group's queries, V tiles made from K tiles, queries of a block.
struct Layout {
  int64_t slots;
  int64_t values;
  int64_t block;  // queries
  HWY_INLINE Layout(const AttentionArgs& args, int64_t num_items) {
    const int64_t dims = args.layout.v_head_dim;
    const bool prefix = args.layout.values == KvValues::kKeyPrefix;
    slots = kMaxQueries * (PaddedDim(dims) + kTile);
    values = prefix ? kSegment * dims * args.layout.k_tile().layout_bits / 32 : 0;
    block = prefix ? num_items : kMaxQueries;
  }
  HWY_INLINE int64_t floats() const {
    return slots + values + block * static_cast<int64_t>(sizeof(Query)) / 4;
  }
};

// Queries are taken in blocks. With V tiles of their own a block is a group; else all of them, so
// that each V tile is made once.
template <class T>
HWY_INLINE void Attend(const AttentionArgs& args, const SequencePlan& sequence, int64_t item_begin,
                       int64_t item_end, int kv_head, float* work) {
  const Layout layout(args, item_end - item_begin);
  Context<T> context = {args, sequence, kv_head, reinterpret_cast<T*>(work + layout.slots), 0};
  auto* queries = reinterpret_cast<Query*>(work + layout.slots + layout.values);
  for (int64_t item = item_begin; item < item_end;) {
    int64_t count = 0;
    for (; count < layout.block && item < item_end; ++count, ++item) {
      queries[count] = MakeQuery(args, sequence, kv_head, item);
    }
    AttendBlock(context, queries, count, work);
  }
}

}  // namespace

int64_t AttentionWork(const AttentionArgs& args, int64_t num_items) {
  return Layout(args, num_items).floats();
}

void Attention(const AttentionArgs& args, const SequencePlan& sequence, int64_t item_begin,
               int64_t item_end, int kv_head, float* work) {
  if (args.layout.k_format() == KvFormat::kF16) {
    Attend<hwy::float16_t>(args, sequence, item_begin, item_end, kv_head, work);
  } else {
    Attend<float>(args, sequence, item_begin, item_end, kv_head, work);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

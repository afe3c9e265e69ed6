// Attention over the pages of one KV head: tiles of 64 positions, segments of 512 with their own
// running maximum, sum and output, merged in index order. Up to eight (token, head) queries share
// every loaded tile. Scores: lanes are tokens (even and odd dims alternate, as the K tile stores
// them). Output: lanes are dims, one chain over the visible tokens, ascending.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/attention.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/attention_tile-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kSegment = 512;

// The tokens of a tile that a query sees.
struct Span {
  int64_t begin;
  int64_t end;
};
HWY_INLINE Span Visible(const Query& query, int64_t tile_begin) {
  return {std::max<int64_t>(query.begin - tile_begin, 0),
          std::min<int64_t>(query.end - tile_begin, kTile)};
}

// One tile for the queries that see it (consecutive, both bounds of their spans ascend).
template <class T>
HWY_INLINE void TileStep(const Tile<T>& keys, const Tile<T>& values, int64_t tile_begin,
                         float scale, Query* const* queries, int num_queries) {
  const int64_t first = Visible(*queries[0], tile_begin).begin;
  const int64_t last = Visible(*queries[num_queries - 1], tile_begin).end;
  Scores(keys, queries, num_queries, static_cast<int>(first / kLanes),
         static_cast<int>((last + kLanes - 1) / kLanes), scale);
  Span common = {0, kTile};
  for (int i = 0; i < num_queries; ++i) {
    const Span span = Visible(*queries[i], tile_begin);
    Softmax(*queries[i], span.begin, span.end);
    common = {std::max(common.begin, span.begin), std::min(common.end, span.end)};
  }
  // Tokens that some queries do not see are added to each of the others alone.
  common.end = std::max(common.end, common.begin);
  for (int i = 0; i < num_queries; ++i) {
    const Span span = Visible(*queries[i], tile_begin);
    const int64_t end = std::min(common.begin, span.end);
    if (span.begin >= end) continue;
    Outputs(values, queries + i, 1, span.begin, end);
    queries[i]->alpha = 1.0f;
  }
  Outputs(values, queries, num_queries, common.begin, common.end);
  for (int i = 0; i < num_queries; ++i) {
    const Span span = Visible(*queries[i], tile_begin);
    const int64_t begin = std::max(common.end, span.begin);
    if (begin >= span.end) continue;
    queries[i]->alpha = 1.0f;
    Outputs(values, queries + i, 1, begin, span.end);
  }
}

// total <- total merged with the segment. The first one is copied.
HWY_INLINE void MergeSegment(Query& query, int64_t padded_dim) {
  if (!query.in_segment) return;
  const VecTag d;
  SoftmaxState& total = query.total;
  const SoftmaxState& segment = query.segment;
  if (!query.has_total) {
    std::copy(segment.o, segment.o + padded_dim, total.o);
    total.max = segment.max;
    total.sum = segment.sum;
    query.has_total = true;
    return;
  }
  const float max = std::max(total.max, segment.max);
  const float f = ScalarExp(total.max - max), e = ScalarExp(segment.max - max);
  total.sum = ScalarFma(e, segment.sum, total.sum * f);
  total.max = max;
  const Vec fv = hn::Set(d, f), ev = hn::Set(d, e);
  for (int64_t i = 0; i < padded_dim; i += kLanes) {
    const Vec scaled = hn::Mul(hn::Load(d, total.o + i), fv);
    hn::Store(hn::MulAdd(ev, hn::Load(d, segment.o + i), scaled), d, total.o + i);
  }
}

HWY_INLINE void Finish(const Query& query, int64_t head_dim) {
  const VecTag d;
  const Vec sum = hn::Set(d, query.total.sum);
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    hn::StoreU(hn::Div(hn::Load(d, query.total.o + i), sum), d, query.out + i);
  }
  if (i == head_dim) return;
  StorePart(hn::Div(hn::Load(d, query.total.o + i), sum), d, query.out + i,
            static_cast<size_t>(head_dim - i));
}

HWY_INLINE const std::byte* KeyTile(const AttentionTask& task, int kv_head, int64_t position,
                                    int64_t tile_bytes) {
  return task.pages + task.page_table[position / kTile] * task.page_bytes +
         2 * tile_bytes * kv_head;
}

// All segments of up to kMaxQueries queries, in token order.
template <class T>
HWY_INLINE void AttendGroup(const AttentionTask& task, int kv_head, Query* const* queries,
                            int num_queries) {
  const int64_t head_dim = task.head_dim;
  const int64_t padded_dim = PaddedDim(head_dim);
  const int64_t tile_bytes = kTile * head_dim * static_cast<int64_t>(sizeof(T));
  const int64_t last = queries[num_queries - 1]->end;
  int64_t tile = queries[0]->begin / kTile * kTile;
  while (tile < last) {
    for (int i = 0; i < num_queries; ++i) {
      Query& query = *queries[i];
      query.segment.max = kMinusInfinity;
      query.segment.sum = 0.0f;
      query.in_segment = false;
      std::fill(query.segment.o, query.segment.o + padded_dim, 0.0f);
    }
    const int64_t segment_end = std::min((tile / kSegment + 1) * kSegment, last);
    for (; tile < segment_end; tile += kTile) {
      int from = 0, to = num_queries;
      while (queries[from]->end <= tile) ++from;
      while (queries[to - 1]->begin >= tile + kTile) --to;
      if (from >= to) continue;
      const std::byte* k = KeyTile(task, kv_head, tile, tile_bytes);
      const std::byte* v = k + tile_bytes;
      const std::byte* next =
          tile + kTile < last ? KeyTile(task, kv_head, tile + kTile, tile_bytes) : k;
      TileStep<T>({reinterpret_cast<const T*>(k), head_dim, v},
                  {reinterpret_cast<const T*>(v), head_dim, next}, tile, task.scale, queries + from,
                  to - from);
    }
    for (int i = 0; i < num_queries; ++i) MergeSegment(*queries[i], padded_dim);
  }
  for (int i = 0; i < num_queries; ++i) Finish(*queries[i], head_dim);
}

}  // namespace

int64_t AttentionWork(const AttentionTask& task, int64_t num_tokens) {
  static_cast<void>(num_tokens);
  return kMaxQueries * (2 * PaddedDim(task.head_dim) + kTile);
}

void Attention(const AttentionTask& task, int64_t token_begin, int64_t token_end, int kv_head,
               float* work) {
  const int64_t heads = task.num_heads / task.num_kv_heads;
  const int64_t padded_dim = PaddedDim(task.head_dim);
  Query queries[kMaxQueries] = {};
  Query* pointers[kMaxQueries];
  for (int i = 0; i < kMaxQueries; ++i) {
    float* mine = work + i * (2 * padded_dim + kTile);
    queries[i].s = mine;
    queries[i].segment.o = mine + kTile;
    queries[i].total.o = mine + kTile + padded_dim;
    pointers[i] = &queries[i];
  }
  const int64_t item_end = token_end * heads;
  for (int64_t item = token_begin * heads; item < item_end;) {
    int count = 0;
    for (; count < kMaxQueries && item < item_end; ++count, ++item) {
      const int64_t token = item / heads;
      const int64_t head = kv_head * heads + item % heads;
      const int64_t offset = (token * task.num_heads + head) * task.head_dim;
      Query& query = queries[count];
      query.q = task.q + offset;
      query.out = task.out + offset;
      query.end = task.start_position + token + 1;
      query.begin = task.window > 0 ? std::max<int64_t>(query.end - task.window, 0) : 0;
      query.has_total = false;
    }
    if (task.f16) {
      AttendGroup<hwy::float16_t>(task, kv_head, pointers, count);
    } else {
      AttendGroup<float>(task, kv_head, pointers, count);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

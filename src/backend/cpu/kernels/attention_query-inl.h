// The queries of an attention task and what both kernels do with them: which positions they see,
// segments, sinks, the last division. Part of attention.cc and packed_attention.cc.

#if defined(TQ_CPU_ATTENTION_QUERY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TQ_CPU_ATTENTION_QUERY_INL_H_
#undef TQ_CPU_ATTENTION_QUERY_INL_H_
#else
#define TQ_CPU_ATTENTION_QUERY_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/attention_tile-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
#include "backend/ops.h"
#include "hwy/highway.h"

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

// The outputs of a tile for queries that see it (consecutive, both bounds of their spans ascend).
template <class T>
HWY_INLINE void OutputSpans(const Tile<T>& values, int64_t tile_begin, Query* const* queries,
                            int num_queries) {
  Span common = {0, kTile};
  for (int i = 0; i < num_queries; ++i) {
    const Span span = Visible(*queries[i], tile_begin);
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

// The same for queries that see the positions in `mask`.
template <class T>
HWY_INLINE void OutputMask(const Tile<T>& values, uint64_t mask, Query* const* queries,
                           int num_queries) {
  while (mask != 0) {
    const int begin = std::countr_zero(mask);
    const int end = begin + std::countr_one(mask >> begin);
    Outputs(values, queries, num_queries, begin, end);
    for (int i = 0; i < num_queries; ++i) queries[i]->alpha = 1.0f;
    mask = end < kTile ? mask >> end << end : 0;
  }
}

HWY_INLINE uint64_t LaneBits(uint64_t mask, int v) {
  return mask >> (v * kLanes) & ((uint64_t{1} << kLanes) - 1);
}

// Scores of the vectors that have a position of `mask`.
template <class T>
HWY_INLINE void MaskedScores(const Tile<T>& keys, uint64_t mask, float scale, Query* const* queries,
                             int num_queries) {
  for (int v = 0; v < kTileVecs; ++v) {
    const int first = v;
    while (v < kTileVecs && LaneBits(mask, v) != 0) ++v;
    if (first < v) Scores(keys, queries, num_queries, first, v, scale);
  }
}

// Scores outside `mask` become -inf, then Softmax.
HWY_INLINE void MaskedSoftmax(uint64_t mask, Query& query) {
  const VecTag d;
  for (int v = 0; v < kTileVecs; ++v) {
    const uint64_t lanes = LaneBits(mask, v);
    uint8_t bytes[8];
    std::memcpy(bytes, &lanes, sizeof(bytes));
    float* s = query.s + v * kLanes;
    hn::Store(
        hn::IfThenElse(hn::LoadMaskBits(d, bytes), hn::Load(d, s), hn::Set(d, kMinusInfinity)), d,
        s);
  }
  Softmax(query, 0, kTile);
}

// o = op(o, index of the vector) for all output dims.
template <class Op>
HWY_INLINE void ForDims(float* o, int64_t dims, const Op& op) {
  const VecTag d;
  int64_t i = 0;
  for (; i + kLanes <= dims; i += kLanes) hn::StoreU(op(hn::LoadU(d, o + i), i), d, o + i);
  if (i == dims) return;
  const size_t rest = static_cast<size_t>(dims - i);
  StorePart(op(LoadPart(d, o + i, rest), i), d, o + i, rest);
}

// total <- total merged with the segment. The first one is copied.
HWY_INLINE void MergeSegment(Query& query, int64_t dims) {
  if (!query.in_segment) return;
  const VecTag d;
  SoftmaxState& total = query.total;
  const SoftmaxState& segment = query.segment;
  if (!query.has_total) {
    std::copy(segment.o, segment.o + dims, total.o);
    total.max = segment.max;
    total.sum = segment.sum;
    query.has_total = true;
    return;
  }
  const float max = std::max(total.max, segment.max);
  const float f = ScalarExp(total.max - Shift(max)), e = ScalarExp(segment.max - Shift(max));
  total.sum = ScalarFma(e, segment.sum, total.sum * f);
  total.max = max;
  const Vec fv = hn::Set(d, f), ev = hn::Set(d, e);
  ForDims(total.o, dims, [&](Vec o, int64_t i) HWY_ATTR {
    return hn::MulAdd(ev, hn::Load(d, segment.o + i), hn::Mul(o, fv));
  });
}

HWY_INLINE void Finish(Query& query, int64_t dims) {
  const VecTag d;
  SoftmaxState& total = query.total;
  if (!query.has_total) {
    std::fill_n(total.o, dims, 0.0f);
    return;
  }
  if (query.sink != kMinusInfinity) {
    const float max = std::max(total.max, query.sink);
    const float f = ScalarExp(total.max - Shift(max));
    total.sum = ScalarFma(total.sum, f, ScalarExp(query.sink - max));
    const Vec fv = hn::Set(d, f);
    ForDims(total.o, dims, [&](Vec o, int64_t) HWY_ATTR { return hn::Mul(o, fv); });
  }
  const Vec sum = hn::Set(d, total.sum == 0.0f ? 1.0f : total.sum);
  ForDims(total.o, dims, [&](Vec o, int64_t) HWY_ATTR { return hn::Div(o, sum); });
}

// The first query after a group that shares loaded tiles: with selections, one token's.
HWY_INLINE int64_t GroupEnd(const Query* queries, int64_t first, int64_t count) {
  int64_t i = first + 1;
  while (i < count && i - first < kMaxQueries && queries[i].selected == queries[first].selected) {
    ++i;
  }
  return i;
}

HWY_INLINE Query MakeQuery(const AttentionArgs& args, const SequencePlan& sequence, int kv_head,
                           int64_t item) {
  const int64_t heads = args.num_heads / args.layout.num_kv_heads;
  const int64_t token = sequence.first_token + item / heads;
  const int64_t head = kv_head * heads + item % heads;
  const int64_t row = token * args.num_heads + head;
  Query query = {};
  query.q = args.q + row * args.layout.head_dim;
  query.total.o = args.out + row * args.layout.v_head_dim;
  query.selected = args.selected ? args.selected + token * args.selected_stride : nullptr;
  query.sink = args.sinks ? args.sinks[head] : kMinusInfinity;
  int64_t newest = sequence.start_position;
  if (args.causal) newest += item / heads;
  query.end = args.causal ? newest + 1 : newest + sequence.num_tokens;
  query.begin = args.window > 0 ? std::max<int64_t>(newest + 1 - args.window, 0) : 0;
  return query;
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

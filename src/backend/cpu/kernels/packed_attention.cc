// Attention over pages with packed keys or values, the rest as in attention.cc: a call's memory,
// its queries in int8, groups and segments. What one tile does is in packed_tile-inl.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/highway_targets.h"
#include "backend/kv_rows.h"
#include "backend/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/packed_attention.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/attention_query-inl.h"
#include "backend/cpu/kernels/attention_tile-inl.h"
#include "backend/cpu/kernels/packed_tile-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE void PackedSegment(Packed& p, const Group& group, int64_t segment_begin) {
  const int64_t dims = p.args.layout.v_head_dim;
  Query* const* queries = group.queries;
  const int64_t last = queries[group.num - 1]->end;
  const int64_t end = std::min(segment_begin + kSegment, last);
  int64_t position = std::max(segment_begin, queries[0]->begin / kTile * kTile);
  if (position >= end) return;
  for (int i = 0; i < group.num; ++i) {
    Query& query = *queries[i];
    query.segment.max = kMinusInfinity;
    query.segment.sum = 0.0f;
    query.in_segment = false;
    std::fill_n(query.segment.o, PaddedDim(dims), 0.0f);
  }
  for (; position < end; position += kTile) {
    int from = 0, to = group.num;
    while (queries[from]->end <= position) ++from;
    while (queries[to - 1]->begin >= position + kTile) --to;
    if (from >= to) continue;
    uint64_t mask = 0;
    if (queries[0]->selected != nullptr) {
      const Span span = Visible(*queries[0], position);
      mask = queries[0]->selected[position / kTile] & ~uint64_t{0} << span.begin &
             ~uint64_t{0} >> (kTile - span.end);
      if (mask == 0) continue;
    }
    const int64_t tile = position / kTile;
    const Packed::Place at = p.At(tile);
    PackedTile(p, group, from, to, tile, mask, at, position + kTile < last ? p.At(tile + 1) : at);
  }
  for (int i = 0; i < group.num; ++i) MergeSegment(*queries[i], dims);
}

int64_t RoundUp16(int64_t n) { return (n + 15) / 16 * 16; }

// Offsets, in floats, of what a call works in.
struct WorkLayout {
  int64_t slot, slots, weights, k_floats, v_floats, codes, scales, rotated, q, sx, corr, queries;
  int64_t total;

  WorkLayout(const AttentionArgs& args, bool integers, int64_t num_items) {
    const KvLayout& layout = args.layout;
    const auto decodes = [integers](const KvTile& tile) {
      return tile.kind == KvTile::Kind::kCodeRows ||
             (tile.kind == KvTile::Kind::kCodeTiles && !integers);
    };
    const bool prefix = layout.values == KvValues::kKeyPrefix;
    const int64_t dim = PaddedDim(layout.head_dim), v_dim = PaddedDim(layout.v_head_dim);
    const int64_t groups =
        layout.head_dim / std::max(1, KvGroup(layout.settings.group_size, layout.head_dim));
    const int64_t blocks = (layout.head_dim + kKvQueryBlock - 1) / kKvQueryBlock;
    total = 0;
    const auto take = [this](int64_t floats) {
      const int64_t at = total;
      total += RoundUp16(floats);
      return at;
    };
    slot = v_dim + kTile;
    slots = take(kMaxQueries * slot);
    weights = take(kMaxQueries * kTile / 4);
    k_floats = take(decodes(layout.k_tile()) ? kSegment * layout.head_dim : 0);
    v_floats = take(prefix || decodes(layout.v_tile()) ? kSegment * layout.v_head_dim : 0);
    codes = take(std::max(dim, v_dim) / 4);
    scales = take(2 * (dim + v_dim));
    rotated = take(num_items * dim);
    q = take((num_items * dim + dim) / 4 + 16);
    sx = take((num_items + 1) * blocks);
    corr = take(num_items * groups);
    queries = take(num_items * static_cast<int64_t>(sizeof(Query)) / 4);
  }
};

// The int8 form of a group's queries. q_row: memory for one.
HWY_INLINE void PrepareInt8(const Packed& p, const Group& group, int8_t* q_row, float* sx_row,
                            int8_t* q, float* sx, int32_t* corr) {
  const KvTile& tile = p.k[0];
  const int64_t blocks = (tile.dim + kKvQueryBlock - 1) / kKvQueryBlock;
  for (int i = 0; i < group.num; ++i) {
    p.kernels.floats->quantize_row(group.queries[i]->q, tile.dim, kKvQueryBlock, q_row, sx_row);
    for (int64_t d = 0; d < tile.dim; d += 4) {
      std::memcpy(q + (d / 4 * group.num + i) * 4, q_row + d, 4);
    }
    for (int64_t b = 0; b < blocks; ++b) sx[b * group.num + i] = sx_row[b];
    for (int64_t g = 0; g < tile.num_groups(); ++g) {
      int32_t sum = 0;
      for (int64_t d = g * tile.group; d < (g + 1) * tile.group; ++d) sum += q_row[d];
      corr[g * group.num + i] = p.omitted * sum;
    }
  }
}

int Omitted(const KvTile& tile, const IntOps& ints) {
  if (tile.format == KvFormat::kInt8) return ints.unsigned_bytes ? -128 : 0;
  if (!ints.unsigned_table) return 0;
  const int8_t* integers = KvIntegersOf(tile.format).integers;
  return std::min<int>(0, *std::min_element(integers, integers + 16));
}

Packed MakePacked(const AttentionArgs& args, const PackedKernels& kernels,
                  const SequencePlan& sequence, int kv_head, const WorkLayout& work_layout,
                  float* work) {
  Packed p{.args = args, .kernels = kernels, .sequence = sequence, .kv_head = kv_head};
  p.layout[0] = args.layout;
  p.layout[1] = args.layout.exact_layout();
  for (int i = 0; i < 2; ++i) {
    p.k[i] = p.layout[i].k_tile();
    p.v[i] = p.layout[i].v_tile();
    p.page_bytes[i] = p.layout[i].page_bytes();
    p.head_bytes[i] = p.layout[i].head_bytes();
    p.k_bytes[i] = p.k[i].bytes();
  }
  p.num_exact = args.layout.num_exact_pages();
  p.integer_keys = kernels.integers && p.k[0].kind == KvTile::Kind::kCodeTiles;
  p.integer_values = kernels.integers && p.v[0].kind == KvTile::Kind::kCodeTiles;
  p.omitted = p.integer_keys ? Omitted(p.k[0], *kernels.ints) : 0;
  p.slots = work + work_layout.slots;
  p.slot = work_layout.slot;
  p.weights = reinterpret_cast<uint8_t*>(work + work_layout.weights);
  p.k_floats = work + work_layout.k_floats;
  p.v_floats = work + work_layout.v_floats;
  p.codes = reinterpret_cast<uint8_t*>(work + work_layout.codes);
  p.scales = work + work_layout.scales;
  return p;
}

// A query of packed keys is rotated like them.
HWY_INLINE void RotateQuery(const Packed& p, Query& query, float* rotated) {
  if (p.kernels.k_rotation->empty()) return;
  std::copy_n(query.q, p.args.layout.head_dim, rotated);
  for (const KvRotationPart& part : *p.kernels.k_rotation) {
    p.kernels.floats->rotate_row(rotated + part.offset, part.signs, part.dim, part.block.m,
                                 part.block.pow2);
  }
  query.q = rotated;
}

}  // namespace

int64_t PackedAttentionWork(const AttentionArgs& args, bool integers, int64_t num_items) {
  return WorkLayout(args, integers, num_items).total;
}

void PackedAttention(const AttentionArgs& args, const PackedKernels& kernels,
                     const SequencePlan& sequence, int64_t item_begin, int64_t item_end,
                     int kv_head, float* work) {
  const int64_t count = item_end - item_begin;
  const WorkLayout at(args, kernels.integers, count);
  Packed p = MakePacked(args, kernels, sequence, kv_head, at, work);
  auto* queries = reinterpret_cast<Query*>(work + at.queries);
  const int64_t dim = PaddedDim(args.layout.head_dim);
  for (int64_t i = 0; i < count; ++i) {
    queries[i] = MakeQuery(args, sequence, kv_head, item_begin + i);
    RotateQuery(p, queries[i], work + at.rotated + i * dim);
  }
  const int64_t blocks = (args.layout.head_dim + kKvQueryBlock - 1) / kKvQueryBlock;
  auto* q8 = reinterpret_cast<int8_t*>(work + at.q);
  float* sx = work + at.sx;
  auto* corr = reinterpret_cast<int32_t*>(work + at.corr);
  const auto make_group = [&](int64_t first) HWY_ATTR {
    Group group;
    group.num = static_cast<int>(GroupEnd(queries, first, count) - first);
    for (int i = 0; i < group.num; ++i) {
      float* slot = p.slots + i * p.slot;
      group.queries[i] = queries + first + i;
      group.queries[i]->s = slot;
      group.queries[i]->segment.o = slot + kTile;
    }
    group.q = q8 + first * p.k[0].dim;
    group.sx = sx + first * blocks;
    group.corr = corr + first * p.k[0].num_groups();
    return group;
  };
  if (p.integer_keys) {
    for (int64_t first = 0; first < count;) {
      const Group group = make_group(first);
      PrepareInt8(p, group, q8 + count * p.k[0].dim, sx + count * blocks, q8 + first * p.k[0].dim,
                  sx + first * blocks, corr + first * p.k[0].num_groups());
      first += group.num;
    }
  }
  const int64_t end = queries[count - 1].end;
  for (int64_t s = queries[0].begin / kSegment * kSegment; s < end; s += kSegment) {
    p.k_ready = 0;
    p.v_ready = 0;
    for (int64_t first = 0; first < count;) {
      const Group group = make_group(first);
      PackedSegment(p, group, s);
      first += group.num;
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    Finish(queries[i], args.layout.v_head_dim);
    UnrotateKv(*kernels.v_rotation, queries[i].total.o);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

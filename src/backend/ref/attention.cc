#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/kv_rows.h"
#include "backend/ref/ref_ops.h"
#include "base/math.h"
#include "tensor/half.h"

namespace tq::ref {
namespace {

constexpr int64_t kSegment = 512;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// What one query has seen so far: of a segment, or of all segments.
struct State {
  float max = kMinusInfinity;
  float sum = 0.0f;
  std::vector<float> out;
};

// A head of one page.
struct PageHead {
  KvTile k_tile;
  KvTile v_tile;
  const std::byte* k;
  const std::byte* v;
};

struct Query {
  const AttentionArgs& args;
  const std::vector<int32_t>& pages;
  int64_t head;
  const float* q;           // rotated if keys are packed
  const ActivationRow* q8;  // the same in int8, where keys are integers; else null
  bool integer_values;
  int64_t first;  // visible positions [first, last],
  int64_t last;
  const uint64_t* selected;  // and, with this, only those whose bit is set

  bool Visible(int64_t position) const {
    if (position < first || position > last) return false;
    return selected == nullptr || (selected[position / 64] >> (position % 64) & 1) != 0;
  }
  bool Visible(int64_t tile, int64_t slot) const { return Visible(tile * kPageTokens + slot); }
  bool TileVisible(int64_t tile) const {
    for (int64_t slot = 0; slot < kPageTokens; ++slot) {
      if (Visible(tile, slot)) return true;
    }
    return false;
  }
  PageHead Page(int64_t tile) const {
    const int64_t kv_head = head / (args.num_heads / args.layout.num_kv_heads);
    return HeadOfPage(args.layout, args.pages, args.exact, pages[tile], tile, kv_head);
  }
  static PageHead HeadOfPage(const KvLayout& layer, const std::byte* pages,
                             const KvExactPages& exact, int32_t page, int64_t index,
                             int64_t kv_head) {
    const bool is_exact = index < layer.num_exact_pages();
    const KvLayout layout = is_exact ? layer.exact_layout() : layer;
    const std::byte* base = is_exact ? exact.base + exact.slots[page] * layout.page_bytes()
                                     : pages + page * layout.page_bytes();
    const std::byte* k = base + kv_head * layout.head_bytes();
    return {layout.k_tile(), layout.v_tile(), k, k + layout.k_tile_bytes()};
  }
};

// What exponents are taken relative to: the maximum, or 0 while every score is -inf.
float Shift(float max) { return max == kMinusInfinity ? 0.0f : max; }

bool IsInteger(const KvTile& tile) { return tile.kind == KvTile::Kind::kCodeTiles; }

int32_t IntegerOf(const KvTile& tile, uint8_t code) {
  return tile.format == KvFormat::kInt8 ? code - 128 : KvIntegersOf(tile.format).integers[code];
}

// Codes and scales of one row.
struct Codes {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  Codes(const KvTile& tile, const std::byte* bytes, int64_t slot)
      : codes(static_cast<size_t>(tile.dim)), scales(static_cast<size_t>(tile.num_groups() + 1)) {
    if (tile.kind != KvTile::Kind::kFloats) {
      LoadKvCodes(tile, bytes, slot, codes.data(), scales.data());
    }
  }
};

std::vector<float> Row(const KvTile& tile, const std::byte* bytes, int64_t slot) {
  std::vector<uint8_t> codes(static_cast<size_t>(tile.dim));
  std::vector<float> scales(static_cast<size_t>(tile.num_groups()));
  std::vector<float> row(static_cast<size_t>(tile.dim));
  LoadKvRow(tile, bytes, slot, codes.data(), scales.data(), row.data());
  return row;
}

// The MatMul rule for int8 activations.
float IntegerDot(const KvTile& tile, const Codes& key, const ActivationRow& q) {
  float y = 0.0f;
  for (int64_t begin = 0; begin < tile.dim; begin += q.block) {
    float p = 0.0f;
    for (int64_t g = begin; g < std::min<int64_t>(begin + q.block, tile.dim); g += tile.group) {
      int32_t sum = 0;
      for (int64_t d = g; d < g + tile.group; ++d) {
        sum += IntegerOf(tile, key.codes[static_cast<size_t>(d)]) * q.q[static_cast<size_t>(d)];
      }
      p = std::fma(key.scales[static_cast<size_t>(g / tile.group)], static_cast<float>(sum), p);
    }
    y = std::fma(q.scale[static_cast<size_t>(begin / q.block)], p, y);
  }
  return y * KvIntegersOf(tile.format).step;
}

float Score(const Query& query, const PageHead& page, int64_t slot) {
  const float scale = query.args.scale;
  if (query.q8 != nullptr && IsInteger(page.k_tile)) {
    return IntegerDot(page.k_tile, Codes(page.k_tile, page.k, slot), *query.q8) * scale;
  }
  const std::vector<float> key = Row(page.k_tile, page.k, slot);
  return FloatDot(key.data(), query.q, query.args.layout.head_dim) * scale;
}

// o[d] = o[d] * decay + sum over j of p_j * v_j[d], values as f32.
void AddValues(const Query& query, const PageHead& page, int64_t tile,
               const std::array<float, kPageTokens>& p, float decay, std::vector<float>& out) {
  const bool prefix = query.args.layout.values == KvValues::kKeyPrefix;
  for (float& o : out) o = o * decay;
  for (int64_t j = 0; j < kPageTokens; ++j) {
    if (!query.Visible(tile, j)) continue;
    const std::vector<float> value =
        prefix ? Row(page.k_tile, page.k, j) : Row(page.v_tile, page.v, j);
    for (size_t d = 0; d < out.size(); ++d) out[d] = std::fma(p[j], value[d], out[d]);
  }
}

// The same with integers: the scales go into the weights, which are quantized for each group.
void AddIntegerValues(const PageHead& page, const std::array<float, kPageTokens>& p, float decay,
                      std::vector<float>& out) {
  const KvTile& tile = page.v_tile;
  const float range = KvWeightRange(tile.format);
  const float unit = KvIntegersOf(tile.format).step / range;
  std::vector<Codes> rows;
  for (int64_t j = 0; j < kPageTokens; ++j) rows.emplace_back(tile, page.v, j);
  for (int64_t g = 0; g < tile.num_groups(); ++g) {
    std::array<float, kPageTokens> w;
    float max = 0.0f;
    for (int64_t j = 0; j < kPageTokens; ++j) {
      w[j] =
          p[j] == 0.0f ? 0.0f : p[j] * rows[static_cast<size_t>(j)].scales[static_cast<size_t>(g)];
      max = std::max(max, w[j]);
    }
    const bool empty = max < kMinActivation;
    const float factor = empty ? 0.0f : range / max;
    const float back = empty ? 0.0f : max * unit;
    std::array<int32_t, kPageTokens> u;
    for (int64_t j = 0; j < kPageTokens; ++j) {
      u[j] = static_cast<int32_t>(std::nearbyint(w[j] * factor));
    }
    for (int64_t d = g * tile.group; d < (g + 1) * tile.group; ++d) {
      int32_t high = 0, low = 0;
      for (int64_t j = 0; j < kPageTokens; ++j) {
        const int32_t c =
            IntegerOf(tile, rows[static_cast<size_t>(j)].codes[static_cast<size_t>(d)]);
        const bool halves = tile.format == KvFormat::kInt8;
        high += halves ? (u[j] >> 7) * c : 0;
        low += (halves ? u[j] & 127 : u[j]) * c;
      }
      const float sum = std::fma(128.0f, static_cast<float>(high), static_cast<float>(low));
      float& o = out[static_cast<size_t>(d)];
      o = std::fma(sum, back, o * decay);
    }
  }
}

void AddTile(const Query& query, int64_t tile, bool first_tile, State& state) {
  const PageHead page = query.Page(tile);
  std::array<float, kPageTokens> p;
  float max = state.max;
  for (int64_t j = 0; j < kPageTokens; ++j) {
    p[j] = kMinusInfinity;
    if (!query.Visible(tile, j)) continue;
    p[j] = Score(query, page, j);
    max = std::max(max, p[j]);
  }
  for (float& value : p) value = value == kMinusInfinity ? 0.0f : Exp(value - Shift(max));
  std::array<float, kPageTokens> lane = p;
  for (int h = kPageTokens / 2; h >= 1; h /= 2) {
    for (int j = 0; j < h; ++j) lane[j] = lane[j] + lane[j + h];
  }
  const float decay = first_tile ? 0.0f : Exp(state.max - Shift(max));
  state.sum = std::fma(state.sum, decay, lane[0]);
  if (query.integer_values && IsInteger(page.v_tile)) {
    AddIntegerValues(page, p, decay, state.out);
  } else {
    AddValues(query, page, tile, p, decay, state.out);
  }
  state.max = max;
}

void Merge(const State& segment, bool first_segment, State& total) {
  if (first_segment) {
    total = segment;
    return;
  }
  const float max = std::max(total.max, segment.max);
  const float f = Exp(total.max - Shift(max));
  const float e = Exp(segment.max - Shift(max));
  total.sum = std::fma(e, segment.sum, total.sum * f);
  for (size_t d = 0; d < total.out.size(); ++d) {
    total.out[d] = std::fma(e, segment.out[d], total.out[d] * f);
  }
  total.max = max;
}

void AddSink(float sink, State& total) {
  const float max = std::max(total.max, sink);
  const float f = Exp(total.max - Shift(max));
  total.sum = std::fma(total.sum, f, Exp(sink - Shift(max)));
  for (float& o : total.out) o = o * f;
}

void AttendHead(const Query& query, float* out) {
  const size_t dims = static_cast<size_t>(query.args.layout.v_head_dim);
  State total;
  total.out.assign(dims, 0.0f);
  bool first_segment = true;
  for (int64_t s = query.first / kSegment; s <= query.last / kSegment; ++s) {
    State segment;
    segment.out.assign(dims, 0.0f);
    bool first_tile = true;
    for (int64_t tile = s * (kSegment / kPageTokens); tile < (s + 1) * (kSegment / kPageTokens);
         ++tile) {
      if (!query.TileVisible(tile)) continue;
      AddTile(query, tile, first_tile, segment);
      first_tile = false;
    }
    if (first_tile) continue;
    Merge(segment, first_segment, total);
    first_segment = false;
  }
  if (query.args.sinks != nullptr) AddSink(query.args.sinks[query.head], total);
  const float sum = total.sum == 0.0f ? 1.0f : total.sum;
  for (size_t d = 0; d < dims; ++d) out[d] = total.out[d] / sum;
}

}  // namespace

void KvAppend(const KvAppendArgs& args, const KvRotation& k_rotation,
              const KvRotation& v_rotation) {
  const KvLayout& layer = args.layout;
  KvRowWork work;
  std::vector<float> row;
  const auto store = [&](const KvTile& tile, const KvRotation& rotation, const float* values,
                         int64_t slot, std::byte* bytes) {
    row.assign(values, values + tile.dim);
    for (const KvRotationPart& part : rotation) {
      const auto dim = static_cast<size_t>(part.dim);
      Rotate({row.data() + part.offset, dim}, {part.signs, dim});
    }
    StoreKvRow(tile, bytes, slot, row.data(), work);
  };
  for (const SequencePlan& sequence : args.plan->sequences) {
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      const int64_t position = sequence.start_position + i;
      const int64_t index = position / kPageTokens;
      for (int64_t g = 0; g < layer.num_kv_heads; ++g) {
        const PageHead page = Query::HeadOfPage(
            layer, args.pages, args.exact, sequence.pages[static_cast<size_t>(index)], index, g);
        const int64_t token = (sequence.first_token + i) * layer.num_kv_heads + g;
        const int64_t slot = position % kPageTokens;
        store(page.k_tile, k_rotation, args.k + token * layer.head_dim, slot,
              const_cast<std::byte*>(page.k));
        if (layer.values != KvValues::kOwn) continue;
        store(page.v_tile, v_rotation, args.v + token * layer.v_head_dim, slot,
              const_cast<std::byte*>(page.v));
      }
    }
  }
}

void AttentionToken(const AttentionArgs& args, const KvRotation& k_rotation,
                    const KvRotation& v_rotation, bool integers, const SequencePlan& sequence,
                    int64_t token) {
  const KvLayout& layout = args.layout;
  const int64_t position = sequence.start_position + (token - sequence.first_token);
  const int64_t last = args.causal ? position : sequence.start_position + sequence.num_tokens - 1;
  const int64_t newest = args.causal ? position : sequence.start_position;
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, newest - args.window + 1) : 0;
  for (int64_t head = 0; head < args.num_heads; ++head) {
    const int64_t row = token * args.num_heads + head;
    const uint64_t* selected =
        args.selected == nullptr ? nullptr : args.selected + token * args.selected_stride;
    const float* q = args.q + row * layout.head_dim;
    ActivationRow prepared;
    prepared.x.assign(q, q + layout.head_dim);
    for (const KvRotationPart& part : k_rotation) {
      const auto dim = static_cast<size_t>(part.dim);
      Rotate({prepared.x.data() + part.offset, dim}, {part.signs, dim});
    }
    const bool integer_keys = integers && IsInteger(layout.k_tile());
    if (integer_keys) Quantize(prepared, kKvQueryBlock);
    float* out = args.out + row * layout.v_head_dim;
    AttendHead({args, sequence.pages, head, prepared.x.data(), integer_keys ? &prepared : nullptr,
                integers && IsInteger(layout.v_tile()), first, last, selected},
               out);
    UnrotateKv(v_rotation, out);
  }
}

}  // namespace tq::ref

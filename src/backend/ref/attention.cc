#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/ref/pages.h"
#include "backend/ref/ref_ops.h"
#include "base/math.h"
#include "tensor/half.h"

namespace tq::ref {
namespace {

constexpr int64_t kSegment = 512;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void Store(const KvLayout& layout, std::byte* tile, int64_t index, float value) {
  if (layout.type == KvType::kF32) {
    std::memcpy(tile + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = F32ToF16(value);
  std::memcpy(tile + index * 2, &bits, 2);
}

// What one query has seen so far: of a segment, or of all segments.
struct State {
  float max = kMinusInfinity;
  float sum = 0.0f;
  std::vector<float> out;
};

struct Query {
  const AttentionArgs& args;
  const std::vector<int32_t>& pages;
  int64_t head;
  const float* q;
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
  const std::byte* KeyTile(int64_t tile) const {
    const int64_t kv_head = head / (args.num_heads / args.layout.num_kv_heads);
    return args.pages + pages[tile] * args.layout.page_bytes() + kv_head * args.layout.head_bytes();
  }
  float Value(int64_t tile, int64_t slot, int64_t dim) const {
    const KvLayout& layout = args.layout;
    if (layout.values == KvValues::kKeyPrefix) {
      return LoadElement(layout, KeyTile(tile), KeyIndex(slot, dim));
    }
    return LoadElement(layout, KeyTile(tile) + layout.k_tile_bytes(),
                       slot * layout.v_head_dim + dim);
  }
};

// What exponents are taken relative to: the maximum, or 0 while every score is -inf.
float Shift(float max) { return max == kMinusInfinity ? 0.0f : max; }

void AddTile(const Query& query, int64_t tile, bool first_tile, State& state) {
  const KvLayout& layout = query.args.layout;
  std::vector<float> key(static_cast<size_t>(layout.head_dim));
  std::array<float, kPageTokens> p;
  float max = state.max;
  for (int64_t j = 0; j < kPageTokens; ++j) {
    p[j] = kMinusInfinity;
    if (!query.Visible(tile, j)) continue;
    LoadKey(layout, query.KeyTile(tile), j, key.data());
    p[j] = FloatDot(key.data(), query.q, layout.head_dim) * query.args.scale;
    max = std::max(max, p[j]);
  }
  for (float& value : p) value = value == kMinusInfinity ? 0.0f : Exp(value - Shift(max));
  std::array<float, kPageTokens> lane = p;
  for (int h = kPageTokens / 2; h >= 1; h /= 2) {
    for (int j = 0; j < h; ++j) lane[j] = lane[j] + lane[j + h];
  }
  const float decay = first_tile ? 0.0f : Exp(state.max - Shift(max));
  state.sum = std::fma(state.sum, decay, lane[0]);
  for (int64_t d = 0; d < layout.v_head_dim; ++d) {
    float o = state.out[d] * decay;
    for (int64_t j = 0; j < kPageTokens; ++j) {
      if (query.Visible(tile, j)) o = std::fma(p[j], query.Value(tile, j, d), o);
    }
    state.out[d] = o;
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

void KvAppend(const KvAppendArgs& args) {
  const KvLayout& layout = args.layout;
  for (const SequencePlan& sequence : args.plan->sequences) {
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      const int64_t position = sequence.start_position + i;
      const int64_t slot = position % kPageTokens;
      std::byte* page = args.pages + sequence.pages[position / kPageTokens] * layout.page_bytes();
      const int64_t token = sequence.first_token + i;
      for (int64_t g = 0; g < layout.num_kv_heads; ++g) {
        std::byte* key_tile = page + g * layout.head_bytes();
        const int64_t row = token * layout.num_kv_heads + g;
        for (int64_t d = 0; d < layout.head_dim; ++d) {
          Store(layout, key_tile, KeyIndex(slot, d), args.k[row * layout.head_dim + d]);
        }
        if (layout.values != KvValues::kOwn) continue;
        for (int64_t d = 0; d < layout.v_head_dim; ++d) {
          Store(layout, key_tile + layout.k_tile_bytes(), slot * layout.v_head_dim + d,
                args.v[row * layout.v_head_dim + d]);
        }
      }
    }
  }
}

void AttentionToken(const AttentionArgs& args, const SequencePlan& sequence, int64_t token) {
  const int64_t position = sequence.start_position + (token - sequence.first_token);
  const int64_t last = args.causal ? position : sequence.start_position + sequence.num_tokens - 1;
  const int64_t newest = args.causal ? position : sequence.start_position;
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, newest - args.window + 1) : 0;
  for (int64_t head = 0; head < args.num_heads; ++head) {
    const int64_t row = token * args.num_heads + head;
    const uint64_t* selected =
        args.selected == nullptr ? nullptr : args.selected + token * args.selected_stride;
    AttendHead(
        {args, sequence.pages, head, args.q + row * args.layout.head_dim, first, last, selected},
        args.out + row * args.layout.v_head_dim);
  }
}

}  // namespace tq::ref

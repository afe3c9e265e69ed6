#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/ref/ref_ops.h"
#include "base/math.h"
#include "tensor/half.h"

namespace tq::ref {
namespace {

constexpr int64_t kSegment = 512;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Element `index` of a tile.
float Load(const KvLayout& layout, const std::byte* tile, int64_t index) {
  if (layout.type == KvType::kF32) {
    float value;
    std::memcpy(&value, tile + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, tile + index * 2, 2);
  return F16ToF32(bits);
}

void Store(const KvLayout& layout, std::byte* tile, int64_t index, float value) {
  if (layout.type == KvType::kF32) {
    std::memcpy(tile + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = F32ToF16(value);
  std::memcpy(tile + index * 2, &bits, 2);
}

int64_t KeyIndex(int64_t slot, int64_t dim) { return (dim / 2 * kPageTokens + slot) * 2 + dim % 2; }

// What one query has seen so far: of a segment, or of all segments.
struct State {
  float max = kMinusInfinity;
  float sum = 0.0f;
  std::vector<float> out;
};

struct Query {
  const AttentionArgs& args;
  const std::vector<int32_t>& pages;
  int64_t kv_head;
  const float* q;
  int64_t first;  // visible positions [first, last]
  int64_t last;

  bool Visible(int64_t position) const { return position >= first && position <= last; }
  const std::byte* KeyTile(int64_t tile) const {
    return args.pages + pages[tile] * args.layout.page_bytes() +
           kv_head * 2 * args.layout.tile_bytes();
  }
  const std::byte* ValueTile(int64_t tile) const {
    return KeyTile(tile) + args.layout.tile_bytes();
  }
};

void AddTile(const Query& query, int64_t tile, bool first_tile, State& state) {
  const KvLayout& layout = query.args.layout;
  const int64_t dims = layout.head_dim;
  std::vector<float> key(static_cast<size_t>(dims));
  std::array<float, kPageTokens> p;
  float max = state.max;
  for (int64_t j = 0; j < kPageTokens; ++j) {
    p[j] = kMinusInfinity;
    if (!query.Visible(tile * kPageTokens + j)) continue;
    for (int64_t d = 0; d < dims; ++d) key[d] = Load(layout, query.KeyTile(tile), KeyIndex(j, d));
    p[j] = FloatDot(key.data(), query.q, dims) * query.args.scale;
    max = std::max(max, p[j]);
  }
  for (float& value : p) value = value == kMinusInfinity ? 0.0f : Exp(value - max);
  std::array<float, kPageTokens> lane = p;
  for (int h = kPageTokens / 2; h >= 1; h /= 2) {
    for (int j = 0; j < h; ++j) lane[j] = lane[j] + lane[j + h];
  }
  const float decay = first_tile ? 0.0f : Exp(state.max - max);
  state.sum = std::fma(state.sum, decay, lane[0]);
  for (int64_t d = 0; d < dims; ++d) {
    float o = state.out[d] * decay;
    for (int64_t j = 0; j < kPageTokens; ++j) {
      if (!query.Visible(tile * kPageTokens + j)) continue;
      o = std::fma(p[j], Load(layout, query.ValueTile(tile), j * dims + d), o);
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
  const float f = Exp(total.max - max);
  const float e = Exp(segment.max - max);
  total.sum = std::fma(e, segment.sum, total.sum * f);
  for (size_t d = 0; d < total.out.size(); ++d) {
    total.out[d] = std::fma(e, segment.out[d], total.out[d] * f);
  }
  total.max = max;
}

void AttendHead(const Query& query, float* out) {
  const size_t dims = static_cast<size_t>(query.args.layout.head_dim);
  const int64_t first_segment = query.first / kSegment;
  State total;
  for (int64_t s = first_segment; s <= query.last / kSegment; ++s) {
    const int64_t first_tile = std::max(query.first, s * kSegment) / kPageTokens;
    const int64_t last_tile = std::min(query.last, (s + 1) * kSegment - 1) / kPageTokens;
    State segment;
    segment.out.assign(dims, 0.0f);
    for (int64_t tile = first_tile; tile <= last_tile; ++tile) {
      AddTile(query, tile, tile == first_tile, segment);
    }
    Merge(segment, s == first_segment, total);
  }
  for (size_t d = 0; d < dims; ++d) out[d] = total.out[d] / total.sum;
}

}  // namespace

void KvAppend(const KvAppendArgs& args) {
  const KvLayout& layout = args.layout;
  const int64_t dims = layout.head_dim;
  for (const SequencePlan& sequence : args.plan->sequences) {
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      const int64_t position = sequence.start_position + i;
      const int64_t slot = position % kPageTokens;
      std::byte* page = args.pages + sequence.pages[position / kPageTokens] * layout.page_bytes();
      const int64_t token = sequence.first_token + i;
      for (int64_t g = 0; g < layout.num_kv_heads; ++g) {
        std::byte* key_tile = page + g * 2 * layout.tile_bytes();
        std::byte* value_tile = key_tile + layout.tile_bytes();
        const int64_t row = (token * layout.num_kv_heads + g) * dims;
        for (int64_t d = 0; d < dims; ++d) {
          Store(layout, key_tile, KeyIndex(slot, d), args.k[row + d]);
          Store(layout, value_tile, slot * dims + d, args.v[row + d]);
        }
      }
    }
  }
}

void AttentionToken(const AttentionArgs& args, const SequencePlan& sequence, int64_t token) {
  const int64_t position = sequence.start_position + (token - sequence.first_token);
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, position - args.window + 1) : 0;
  const int heads_per_group = args.num_heads / args.layout.num_kv_heads;
  for (int head = 0; head < args.num_heads; ++head) {
    const int64_t row = (token * args.num_heads + head) * args.layout.head_dim;
    AttendHead({args, sequence.pages, head / heads_per_group, args.q + row, first, position},
               args.out + row);
  }
}

}  // namespace tq::ref

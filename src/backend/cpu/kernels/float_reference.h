// Scalar references for the tests of the float kernels: docs/numerics.md, word for word.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/kernels/float_ops.h"
#include "base/math.h"
#include "tensor/half.h"

namespace tq::reference {

inline std::vector<float> Random(uint64_t seed, int64_t n, float scale = 1.0f) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(engine);
  return values;
}

// Index of the first element with other bits, -1 when there is none.
inline int64_t FirstDifference(const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return i;
  }
  return -1;
}

inline int64_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  return FirstDifference(a.data(), b.data(), static_cast<int64_t>(a.size()));
}

// The value that a float type stores for x, and its code.
inline uint16_t Encode(FloatType type, float x) {
  return type == FloatType::kF16 ? F32ToF16(x) : F32ToBf16(x);
}
inline float Stored(FloatType type, float x) {
  if (type == FloatType::kF32) return x;
  return type == FloatType::kF16 ? F16ToF32(Encode(type, x)) : Bf16ToF32(Encode(type, x));
}

// Bytes aligned to 64, as the kernels expect their tiles.
struct alignas(64) Line {
  std::array<std::byte, 64> bytes{};
};
struct Tiles {
  std::vector<Line> lines;
  const std::byte* data() const { return lines.data()->bytes.data(); }
  std::byte* data() { return lines.data()->bytes.data(); }
};

inline Tiles Pack(FloatType type, const std::vector<float>& w, int64_t rows, int64_t cols) {
  Tiles tiles;
  const int64_t num_tiles = (rows + kTileRows - 1) / kTileRows;
  const int64_t tile_bytes = FloatTileBytes(type, cols);
  tiles.lines.resize(static_cast<size_t>(num_tiles * tile_bytes / 64));
  for (int64_t n = 0; n < rows; ++n) {
    std::byte* tile = tiles.data() + n / kTileRows * tile_bytes;
    const int64_t r = n % kTileRows;
    for (int64_t k = 0; k < cols; ++k) {
      const float value = w[n * cols + k];
      if (type == FloatType::kF32) {
        std::memcpy(tile + k * 64 + r * 4, &value, 4);
      } else {
        const uint16_t code = Encode(type, value);
        std::memcpy(tile + k / 2 * 64 + r * 4 + k % 2 * 2, &code, 2);
      }
    }
  }
  return tiles;
}

// sum of w[k] * x[k]: even and odd chains in blocks of 256.
inline float Dot(const float* w, const float* x, int64_t n) {
  float y = 0.0f;
  for (int64_t begin = 0; begin < n; begin += 256) {
    float e = 0.0f, o = 0.0f;
    for (int64_t k = begin; k < std::min(n, begin + 256); ++k) {
      float& sum = (k - begin) % 2 == 0 ? e : o;
      sum = std::fma(w[k], x[k], sum);
    }
    y = y + (e + o);
  }
  return y;
}

template <size_t N>
float Tree(std::array<float, N> lane) {
  for (size_t h = N / 2; h >= 1; h /= 2) {
    for (size_t j = 0; j < h; ++j) lane[j] = lane[j] + lane[j + h];
  }
  return lane[0];
}

inline std::vector<float> RmsNorm(const std::vector<float>& x, const std::vector<float>& w,
                                  bool plus_one, float eps) {
  std::array<float, 256> lane{};
  for (size_t i = 0; i < x.size(); ++i) lane[i % 256] = std::fma(x[i], x[i], lane[i % 256]);
  const float r = 1.0f / std::sqrt(Tree(lane) / static_cast<float>(x.size()) + eps);
  std::vector<float> out;
  for (size_t i = 0; i < x.size(); ++i) {
    out.push_back((x[i] * r) * (plus_one ? 1.0f + w[i] : w[i]));
  }
  return out;
}

// Where dim d of the token in `slot` lies in a K tile.
inline int64_t KeyIndex(int64_t slot, int64_t d) { return (d / 2 * 64 + slot) * 2 + d % 2; }

inline float LoadElement(bool f16, const std::byte* tile, int64_t index) {
  if (!f16) {
    float value;
    std::memcpy(&value, tile + index * 4, 4);
    return value;
  }
  uint16_t code;
  std::memcpy(&code, tile + index * 2, 2);
  return F16ToF32(code);
}

struct Softmax {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  std::vector<float> o;
};

// One KV head of one query: `first` to `last` are visible.
struct AttentionView {
  const AttentionArgs& args;
  const SequencePlan& sequence;
  int kv_head;
  const float* q;
  int64_t first;
  int64_t last;
};

// The tile of positions [begin, begin + 64).
inline void AddTile(const AttentionView& view, int64_t begin, bool first_tile, Softmax& state) {
  const KvLayout& layout = view.args.layout;
  const bool f16 = layout.k_format() == KvFormat::kF16;
  const int64_t dims = layout.head_dim;
  const std::byte* k_tile = view.args.pages +
                            view.sequence.pages[begin / 64] * layout.page_bytes() +
                            view.kv_head * layout.head_bytes();
  const std::byte* v_tile = k_tile + layout.k_tile_bytes();
  std::array<float, 64> p{};
  float max = state.max;
  std::vector<float> key(static_cast<size_t>(dims));
  const auto visible = [&](int64_t j) { return begin + j >= view.first && begin + j <= view.last; };
  for (int64_t j = 0; j < 64; ++j) {
    if (!visible(j)) continue;
    for (int64_t d = 0; d < dims; ++d) key[d] = LoadElement(f16, k_tile, KeyIndex(j, d));
    p[j] = Dot(key.data(), view.q, dims) * view.args.scale;
    max = std::max(max, p[j]);
  }
  for (int64_t j = 0; j < 64; ++j) p[j] = visible(j) ? Exp(p[j] - max) : 0.0f;
  const float a = first_tile ? 0.0f : Exp(state.max - max);
  state.sum = std::fma(state.sum, a, Tree(p));
  state.max = max;
  for (int64_t d = 0; d < layout.v_head_dim; ++d) {
    state.o[d] = state.o[d] * a;
    for (int64_t j = 0; j < 64; ++j) {
      if (!visible(j)) continue;
      state.o[d] = std::fma(p[j], LoadElement(f16, v_tile, j * layout.v_head_dim + d), state.o[d]);
    }
  }
}

// Token `token` of a sequence: causal, values of their own.
inline std::vector<float> Attend(const AttentionArgs& args, const SequencePlan& sequence,
                                 int64_t token, int head) {
  const KvLayout& layout = args.layout;
  const float* q = args.q + (token * args.num_heads + head) * layout.head_dim;
  const int64_t last = sequence.start_position + token;
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, last - args.window + 1) : 0;
  const AttentionView view = {args, sequence, head / (args.num_heads / layout.num_kv_heads),
                              q,    first,    last};
  Softmax total;
  bool first_segment = true;
  for (int64_t segment = first / 512 * 512; segment <= last; segment += 512) {
    Softmax state;
    state.o.assign(static_cast<size_t>(layout.v_head_dim), 0.0f);
    bool first_tile = true;
    for (int64_t tile = segment; tile < segment + 512 && tile <= last; tile += 64) {
      if (tile + 64 <= first) continue;
      AddTile(view, tile, first_tile, state);
      first_tile = false;
    }
    if (first_segment) {
      total = state;
      first_segment = false;
      continue;
    }
    const float max = std::max(total.max, state.max);
    const float f = Exp(total.max - max), e = Exp(state.max - max);
    total.sum = std::fma(e, state.sum, total.sum * f);
    for (size_t d = 0; d < total.o.size(); ++d) {
      total.o[d] = std::fma(e, state.o[d], total.o[d] * f);
    }
    total.max = max;
  }
  for (float& value : total.o) value = value / total.sum;
  return total.o;
}

}  // namespace tq::reference

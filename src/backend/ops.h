// One argument struct per op. All activations are f32, row-major, contiguous unless a stride is
// given; T is the number of tokens. Pointers are the backend's memory, never overlap unless said,
// and are borrowed for the call. The order of every sum is fixed by docs/numerics.md, so that all
// backends, instruction sets, thread counts and batch companies give the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "backend/step_plan.h"
#include "codec/format.h"

namespace tq {

class Scratch;

// int8 activations: a block whose largest magnitude is below this counts as zero, so that 127 / max is
// always finite.
inline constexpr float kMinActivation = 7.8886090522101181e-31f;  // 2^-100

// A matrix after a backend has laid it out for itself. Immutable. Owned by the model.
class Weight {
 public:
  Weight(Format format, int64_t rows, int64_t cols) : format_(format), rows_(rows), cols_(cols) {}
  virtual ~Weight() = default;
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;

  const Format& format() const { return format_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  virtual int64_t bytes() const = 0;       // memory that the prepared form takes
  virtual const char* kernel() const = 0;  // the kernel chosen for it, for `inspect`

 private:
  Format format_;
  int64_t rows_;
  int64_t cols_;
};

// out[T, cols] = scale * table[ids].
struct EmbedArgs {
  const Weight* table;
  std::span<const int32_t> ids;
  float scale = 1.0f;
  float* out;
};

// y[T, N] = x[T, K] * W[N, K]^T + bias[N]. Rotation and int8 quantization of x happen inside.
struct MatMulArgs {
  const Weight* weight;
  const float* x;
  const float* bias = nullptr;  // [N] or null
  float* y;
  int64_t num_tokens;
};

// out[r, n] = x[r, n] * rsqrt(mean(x[r]^2) + eps) * (w or 1 + w). out may equal x.
struct RmsNormArgs {
  const float* x;
  const float* w;  // [n]
  bool plus_one = false;
  float eps;
  float* out;
  int64_t num_rows;
  int64_t n;
};

// Rotates the first rotary_dim dims of every head in place; halves pairing: (j, j + rotary_dim /
// 2). cos, sin: [T, rotary_dim / 2], already multiplied by the scaling's attention factor.
struct RopeArgs {
  float* x;  // [T, H, D]
  int64_t num_tokens;
  int num_heads;
  int head_dim;
  int rotary_dim;
  const float* cos;
  const float* sin;
};

enum class KvType : uint8_t { kF16, kF32 };

// The KV pages of one layer. A page holds, for each KV head in order, a K tile and a V tile:
//   K tile [D / 2][64 tokens][2]: dims 2i and 2i + 1 of a token are neighbours (D is even)
//   V tile [64 tokens][D]
struct KvLayout {
  KvType type = KvType::kF16;
  int num_kv_heads = 0;
  int head_dim = 0;
  int64_t element_bytes() const { return type == KvType::kF16 ? 2 : 4; }
  int64_t tile_bytes() const { return int64_t{kPageTokens} * head_dim * element_bytes(); }
  int64_t page_bytes() const { return 2 * tile_bytes() * num_kv_heads; }
};

// Writes k, v [T, G, D] of every token of the plan to its place in the pages.
struct KvAppendArgs {
  const StepPlan* plan;
  KvLayout layout;
  std::byte* pages;  // page i at pages + i * layout.page_bytes()
  const float* k;
  const float* v;
};

// out[T, H, D] = softmax(scale * q k^T) v over the cached positions j <= position, and, with
// window > 0, position - j < window. Query head h reads KV head h / (H / G).
struct AttentionArgs {
  const StepPlan* plan;
  KvLayout layout;
  const std::byte* pages;
  const float* q;  // [T, H, D]
  float* out;
  int num_heads;
  float scale;
  int window = 0;
};

enum class Activation : uint8_t { kSilu, kGeluTanh };

// out[i] = activation(gate[i]) * up[i]. out may equal gate.
struct GluArgs {
  Activation activation;
  const float* gate;
  const float* up;
  float* out;
  int64_t n;
};

// y[i] += x[i].
struct AddArgs {
  const float* x;
  float* y;
  int64_t n;
};

// x[i] = cap * tanh(x[i] / cap).
struct SoftcapArgs {
  float* x;
  float cap;
  int64_t n;
};

}  // namespace tq

// One argument struct per op. All activations are f32, row-major, contiguous unless a stride is
// given; T is the number of tokens. Pointers are the backend's memory, never overlap unless said,
// and are borrowed for the call. The order of every sum is fixed by docs/numerics.md, so that all
// backends, instruction sets, thread counts and batch companies give the same bits.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "backend/kv_layout.h"
#include "backend/step_plan.h"
#include "codec/format.h"

namespace tq {

class Scratch;

// int8 activations: a block whose largest magnitude is below this counts as zero, so that 127 / max
// is always finite.
inline constexpr float kMinActivation = 7.8886090522101181e-31f;  // 2^-100
// Fewest columns that share an int8 scale, where the weights are a grid (codec/grid.h).
inline constexpr int kMinGridBlock = 32;

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
  const float* w;  // [w_rows, n], row r uses w[r % w_rows]; null: no weight
  bool plus_one = false;
  float eps;
  float* out;
  int64_t num_rows;
  int64_t n;
  int64_t w_rows = 1;
};

// out[r, n] = (x[r, n] - mean) * rsqrt(variance + eps) * w + b. out may equal x.
struct LayerNormArgs {
  const float* x;
  const float* w;  // [n]
  const float* b;  // [n]
  float eps;
  float* out;
  int64_t num_rows;
  int64_t n;
};

// Rotates the dims [offset, offset + rotary_dim) of every head in place. Pairs: halves (j, j +
// rotary_dim / 2), or interleaved (2 j, 2 j + 1). cos, sin: [T, rotary_dim / 2], already multiplied
// by the scaling's attention factor.
struct RopeArgs {
  float* x;  // [T, H, D]
  int64_t num_tokens;
  int num_heads;
  int head_dim;
  int rotary_dim;
  const float* cos;
  const float* sin;
  int offset = 0;
  bool interleaved = false;
};

// Writes k [T, G, D] and v [T, G, Dv] of every token of the plan to its place in the pages.
struct KvAppendArgs {
  const StepPlan* plan;
  KvLayout layout;
  std::byte* pages;  // page i at pages + i * layout.page_bytes()
  const float* k;
  const float* v;  // null unless layout.values is kOwn
  KvExactPages exact = {};
};

// out[T, H, Dv] = softmax(scale * q k^T) v over the visible positions. Query head h reads KV head
// h / (H / G). A position j is visible to the query at position t when
//   causal:      j <= t and (window == 0 or t - j < window)
//   not causal:  j <= last position of this step's sequence, and (window == 0 or
//                sequence.start_position - j < window): the step's own tokens all see each other
// and, with `selected`, bit j % 64 of selected[t * selected_stride + j / 64] is set (at least one
// visible position must be).
struct AttentionArgs {
  const StepPlan* plan;
  KvLayout layout;
  const std::byte* pages;
  const float* q;  // [T, H, D]
  float* out;
  int num_heads;
  float scale;
  int window = 0;
  bool causal = true;
  const float* sinks = nullptr;  // [H]: a logit per head that takes part in the softmax, no value
  const uint64_t* selected = nullptr;
  int64_t selected_stride = 0;
  KvExactPages exact = {};
};

enum class Activation : uint8_t {
  kSilu,
  kGeluTanh,
  kSigmoid,
  kSoftplus,
  kClampedSilu,  // gpt_oss: g = min(gate, limit), u = clamp(up, +-limit): (u + 1) * g *
                 // sigmoid(alpha g)
  kSitu,  // kimi_k3: alpha tanh(g / alpha) sigmoid(g) * (limit tanh(u / limit), or u if limit is 0)
};

// out[i] = activation(gate[i]) * up[i]. out may equal gate or up.
struct GluArgs {
  Activation activation;
  const float* gate;
  const float* up;
  float* out;
  int64_t n;
  float alpha = 0;
  float limit = 0;
};

enum class MapFn : uint8_t { kIdentity, kSigmoid, kSoftplus, kSilu, kRelu2 };

// out[r, c] = clamp(scale * post[c] * fn(pre[c] * (x[r, c] + bias[c]))), each vector optional
// (null: 1, 0, 1). The factors are applied in this order: + bias, * pre, fn, * post, * scale. out
// may equal x if x_stride is n.
struct MapArgs {
  const float* x;
  int64_t x_stride;  // floats from row to row of x
  float* out;        // [num_rows, n]
  int64_t num_rows;
  int64_t n;
  MapFn fn = MapFn::kIdentity;
  const float* bias = nullptr;
  const float* pre = nullptr;
  const float* post = nullptr;
  float scale = 1.0f;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// out[r, :] = x[r, :] * factors[r]. out may equal x.
struct ScaleRowsArgs {
  const float* x;
  const float* factors;
  float* out;
  int64_t num_rows;
  int64_t n;
};

// out row r = x row (index ? index[r] : r), n floats each: gathers rows, cuts columns, joins them.
struct CopyRowsArgs {
  const float* x;
  int64_t x_stride;
  float* out;
  int64_t out_stride;
  int64_t num_rows;
  int64_t n;
  const int32_t* index = nullptr;
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

// Ops of residual schemes with more than one stream. Same conventions as backend/ops.h.
#pragma once

#include <cstdint>
#include <span>

namespace tq {

// Attention over earlier residuals: score_c = sum over i of (x_c[t, i] * rsqrt(mean(x_c[t]^2) +
// eps)) * omega[i]; out[t] = sum over c of softmax(score)_c * x_c[t], added in the order of c.
struct ResidualMixArgs {
  std::span<const float* const> candidates;  // each [T, n]; at most 64
  const float* omega;                        // [n]
  float eps;
  float* out;  // [T, n], overlaps no candidate
  int64_t num_tokens;
  int64_t n;
};

// out[t, i] = (sum over streams s of a[t, s, i] * b[t, s, i]) / m, added in the order of s.
struct StreamMeanArgs {
  const float* a;  // [T, m, n]
  const float* b;  // [T, m, n]
  float* out;      // [T, n]
  int64_t num_tokens;
  int num_streams;
  int64_t n;
};

// x[t, s, i] += gain[t, s] * y[t, i].
struct StreamInjectArgs {
  const float* gain;  // [T, m]
  const float* y;     // [T, n]
  float* x;           // [T, m, n]
  int64_t num_tokens;
  int num_streams;
  int64_t n;
};

// One gate per stream, from how well its key meets its query (per-layer n-gram embeddings):
//   g = (key[t, s] . query[t, s]) / sqrt(n);  g = sign(g) sqrt(max(|g|, 1e-6));
//   out[t, s, i] = sigmoid(g) * value[t, i]
struct StreamGateArgs {
  const float* key;    // [T, m, n]
  const float* query;  // [T, m, n]
  const float* value;  // [T, n]
  float* out;          // [T, m, n]
  int64_t num_tokens;
  int num_streams;
  int64_t n;
};

}  // namespace tq

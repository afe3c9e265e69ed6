#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/ref/ref_ops.h"
#include "base/math.h"

namespace tq::ref {

void CausalConv(const CausalConvArgs& args, const SequencePlan& sequence) {
  const int64_t history = int64_t{args.kernel - 1} * args.dilation;
  float* state = args.state.base + sequence.state_slot * args.state.state_stride;
  if (sequence.start_position == 0) std::fill_n(state, history * args.channels, 0.0f);
  const float* x = args.x + sequence.first_token * args.x_stride;
  for (int64_t channel = 0; channel < args.channels; ++channel) {
    // The inputs of this channel: what the state remembers, then this step's.
    std::vector<float> inputs;
    for (int64_t i = 0; i < history; ++i) inputs.push_back(state[i * args.channels + channel]);
    for (int64_t t = 0; t < sequence.num_tokens; ++t) {
      inputs.push_back(x[t * args.x_stride + channel]);
    }
    for (int64_t t = 0; t < sequence.num_tokens; ++t) {
      float y = args.bias != nullptr ? args.bias[channel] : 0.0f;
      for (int64_t s = 0; s < args.kernel; ++s) {
        y = std::fma(args.w[s * args.channels + channel], inputs[t + s * args.dilation], y);
      }
      args.out[(sequence.first_token + t) * args.channels + channel] = args.silu ? Silu(y) : y;
    }
    for (int64_t i = 0; i < history; ++i) {
      state[i * args.channels + channel] = inputs[sequence.num_tokens + i];
    }
  }
}

void DeltaRuleHead(const DeltaRuleArgs& args, const SequencePlan& sequence, int64_t head) {
  const int64_t k_dim = args.k_dim;
  const int64_t v_dim = args.v_dim;
  float* state =
      args.state.base + sequence.state_slot * args.state.state_stride + head * k_dim * v_dim;
  if (sequence.start_position == 0) std::fill_n(state, k_dim * v_dim, 0.0f);
  const int64_t k_head = head / (args.num_v_heads / args.num_k_heads);
  for (int64_t t = sequence.first_token; t < sequence.first_token + sequence.num_tokens; ++t) {
    const float* q = args.q + (t * args.num_k_heads + k_head) * k_dim;
    const float* k = args.k + (t * args.num_k_heads + k_head) * k_dim;
    const int64_t row = t * args.num_v_heads + head;
    for (int64_t c = 0; c < k_dim; ++c) {
      const float g = Exp(args.log_decay[args.decay_per_key ? row * k_dim + c : row]);
      for (int64_t v = 0; v < v_dim; ++v) state[c * v_dim + v] = state[c * v_dim + v] * g;
    }
    for (int64_t v = 0; v < v_dim; ++v) {
      float r = 0.0f;
      for (int64_t c = 0; c < k_dim; ++c) r = std::fma(state[c * v_dim + v], k[c], r);
      const float d = args.beta[row] * (args.v[row * v_dim + v] - r);
      float o = 0.0f;
      for (int64_t c = 0; c < k_dim; ++c) {
        float& s = state[c * v_dim + v];
        s = std::fma(k[c], d, s);
        o = std::fma(s, q[c], o);
      }
      args.out[row * v_dim + v] = o;
    }
  }
}

void MambaScanHead(const MambaScanArgs& args, const SequencePlan& sequence, int64_t head) {
  const int64_t dims = args.head_dim;
  float* state = args.state.base + sequence.state_slot * args.state.state_stride +
                 head * args.state_size * dims;
  if (sequence.start_position == 0) std::fill_n(state, args.state_size * dims, 0.0f);
  const int64_t group = head / (args.num_heads / args.num_groups);
  for (int64_t t = sequence.first_token; t < sequence.first_token + sequence.num_tokens; ++t) {
    const float* b = args.b + (t * args.num_groups + group) * args.state_size;
    const float* c = args.c + (t * args.num_groups + group) * args.state_size;
    const int64_t row = t * args.num_heads + head;
    const float dt = args.dt[row];
    const float g = Exp(-(args.a[head] * dt));
    for (int64_t i = 0; i < dims; ++i) {
      const float x = args.x[row * dims + i];
      float y = 0.0f;
      for (int64_t j = 0; j < args.state_size; ++j) {
        float& s = state[j * dims + i];
        s = std::fma(dt * b[j], x, s * g);
        y = std::fma(s, c[j], y);
      }
      args.out[row * dims + i] = std::fma(args.d[head], x, y);
    }
  }
}

}  // namespace tq::ref

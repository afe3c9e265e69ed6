// Ops that carry a state from token to token. A sequence's state lives in slot
// SequencePlan::state_slot, `state_stride` floats from the next one; a sequence that starts
// (start_position
// == 0) begins with zeros, whatever the slot holds. Tokens are taken one after another, so the bits
// do not depend on how a prompt is cut. Same conventions as backend/ops.h.
#pragma once

#include <cstdint>

#include "backend/step_plan.h"

namespace tq {

struct StateRef {
  float* base;           // of slot 0
  int64_t state_stride;  // floats
};

// Causal depthwise convolution over time, tap K - 1 on the current token:
//   out[t, c] = act(bias[c] + sum over s < K of w[s, c] * x[t - (K - 1 - s) * dilation, c])
// State: the last (K - 1) * dilation inputs, oldest first, [(K - 1) * dilation, C].
struct CausalConvArgs {
  const StepPlan* plan;
  const float* x;  // [T, C]
  int64_t x_stride;
  const float* w;               // [K, C]
  const float* bias = nullptr;  // [C]
  bool silu = true;             // act, else identity
  float* out;                   // [T, C]
  int64_t channels;
  int kernel;
  int dilation = 1;
  StateRef state;
};

// The gated delta rule of Gated DeltaNet and Kimi Delta Attention. Value head a reads key head
// a / (Hv / Hk). Per head, state S [dk, dv]:
//   S[c, :] *= exp(log_decay[c]);  r = S^T k;  d = beta (v - r);  S += k d^T;  out = S^T q
// dk is at most 8192.
struct DeltaRuleArgs {
  const StepPlan* plan;
  const float* q;          // [T, Hk, dk], normalized and scaled
  const float* k;          // [T, Hk, dk], normalized
  const float* v;          // [T, Hv, dv]
  const float* log_decay;  // [T, Hv], or [T, Hv, dk] with decay_per_key
  const float* beta;       // [T, Hv]
  float* out;              // [T, Hv, dv]
  int num_k_heads;
  int num_v_heads;
  int k_dim;
  int v_dim;
  bool decay_per_key = false;
  StateRef state;  // [Hv, dk, dv]
};

// The Mamba2 recurrence. Head a reads group a / (H / G). Per head, state s [N, D]:
//   s = exp(-a[h] dt) s + (dt B) x^T;  out = s^T C + d[h] x
struct MambaScanArgs {
  const StepPlan* plan;
  const float* x;   // [T, H, D]
  const float* b;   // [T, G, N]
  const float* c;   // [T, G, N]
  const float* dt;  // [T, H], after softplus and limits
  const float* a;   // [H], exp(A_log)
  const float* d;   // [H]
  float* out;       // [T, H, D]
  int num_heads;
  int head_dim;
  int num_groups;
  int state_size;
  StateRef state;  // [H, N, D]
};

}  // namespace tq

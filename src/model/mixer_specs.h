// The mixers of a block as data: every kind of attention and of recurrent layer. Field names are
// config.json's. The maths is in mixers/, one file each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/ops.h"

namespace tq {

struct NormSpec {
  float eps = 1e-6f;
  bool plus_one = false;  // the stored weight is w - 1
  bool weight = true;     // false: no weight, x * r only
};

// Rotary frequencies, ready to use (model/rope.h makes them from config.json).
struct RopeSpec {
  std::vector<float> inv_freq;  // [rotary_dim / 2]
  // [rotary_dim / 2]: the axis of the position that turns each pair (mrope); empty: axis 0 all.
  std::vector<uint8_t> axes;
  float attention_factor = 1.0f;  // multiplies cos and sin
  int64_t max_positions = 0;      // that a scaling (yarn) is made for; 0: it says nothing
  int rotary_dim() const { return static_cast<int>(inv_freq.size()) * 2; }
};

// What multiplies the mixed values before o_proj.
enum class OutputGate : uint8_t {
  kNone,
  kSigmoidInQ,       // q_proj has 2 d rows per head: query, then gate
  kSigmoid,          // elementwise, from gate_proj
  kSoftplus,         // elementwise
  kSoftplusPerHead,  // one per head
};

// Sparse attention over the best blocks of keys (qwen4_exp).
struct BlockIndexSpec {
  int num_heads = 0;
  int head_dim = 0;
  int block = 4;       // tokens per key
  int64_t budget = 0;  // tokens that stay visible
  NormSpec norm;
};

struct AttentionSpec {
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  bool q_bias = false;
  bool k_bias = false;
  bool v_bias = false;
  bool o_bias = false;
  std::optional<NormSpec> qk_norm;  // over head_dim, before rope
  std::optional<NormSpec> v_norm;   // over head_dim
  bool v_from_k = false;            // no v_proj: the values are the keys before norm and rope
  float q_multiplier = 1.0f;        // after the norm
  int rope = 0;                     // index into ModelSpec::ropes; -1: none
  float scale = 1.0f;
  int sliding_window = 0;  // 0: full attention
  OutputGate gate = OutputGate::kNone;
  std::string gate_name = "gate_proj";
  std::string sinks;  // tensor of one logit per head; empty: none
  // q *= 1 + beta ln(1 + floor(position / original)), after rope; beta 0: off.
  float position_beta = 0.0f;
  int64_t position_original = 0;
  int kv_layer = -1;  // >= 0: reads K and V of that earlier layer and has none of its own
  std::optional<BlockIndexSpec> indexer;
};

// The indexer of deepseek_v32: which tokens a query attends to.
struct TokenIndexSpec {
  int num_heads = 0;
  int head_dim = 0;
  int64_t top_k = 0;
  bool interleaved = false;
};

// Multi-head latent attention: one latent of kv_lora_rank values and one rope key for all heads.
struct MlaSpec {
  int num_attention_heads = 0;
  int q_lora_rank = 0;  // 0: one q_proj
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
  bool bias = false;
  float latent_eps = 1e-6f;
  int rope = 0;  // index into ModelSpec::ropes; -1: none
  bool interleaved = true;
  float scale = 1.0f;
  std::string gate_name;  // sigmoid gate on the mixed values; empty: none
  std::optional<TokenIndexSpec> indexer;
};

struct GatedDeltaNetSpec {
  int num_key_heads = 0;
  int num_value_heads = 0;
  int key_head_dim = 0;
  int value_head_dim = 0;
  int conv_kernel = 4;
  float norm_eps = 1e-6f;
  Activation gate = Activation::kSilu;
  bool fused_projections = false;  // in_proj_qkvz and in_proj_ba, grouped by key head
};

// Kimi Delta Attention.
struct KdaSpec {
  int num_heads = 0;
  int head_dim = 0;
  int conv_kernel = 4;
  float norm_eps = 1e-5f;
  float gate_lower_bound = 0.0f;  // < 0: decay = bound * sigmoid(...); 0: unbounded softplus form
  bool full_rank_gate = false;    // g_proj, else g_a_proj and g_b_proj
};

struct Mamba2Spec {
  int num_heads = 0;
  int head_dim = 0;
  int num_groups = 0;
  int state_size = 0;
  int conv_kernel = 4;
  bool conv_bias = true;
  bool proj_bias = false;
  float norm_eps = 1e-5f;
  float time_step_min = 0.0f;
  float time_step_max = 0.0f;  // 0: no limit
};

// monostate: the block has no mixer (a feed-forward layer of nemotron_h).
using MixerSpec =
    std::variant<std::monostate, AttentionSpec, MlaSpec, GatedDeltaNetSpec, KdaSpec, Mamba2Spec>;

}  // namespace tq

// What the config.json of the mixture-of-experts families has in common.
#pragma once

#include "base/json.h"
#include "model/arch/decoder_config.h"
#include "model/spec.h"

namespace tq {

// Which layers have experts: mlp_layer_types ("dense" / "sparse"), else mlp_only_layers with
// decoder_sparse_step, and first_k_dense_replace (its default when the key is absent) with
// moe_layer_freq. Errors go to the reader.
std::vector<bool> ReadSparseLayers(ConfigReader& config, size_t num_layers, int64_t first_dense);

// qwen: softmax over all experts, a shared expert behind a sigmoid gate (when `shared`).
MoeSpec ReadQwenMoe(ConfigReader& config, bool shared, bool norm_topk_default);

// deepseek_v2: softmax over all experts, groups by their best expert, shared experts.
MoeSpec ReadGroupSoftmaxMoe(ConfigReader& config, bool greedy);

struct SigmoidMoeDefaults {
  int64_t num_experts = 256;
  int64_t top_k = 8;
  int64_t moe_intermediate_size = 2048;
  int64_t num_shared_experts = 1;
  double routed_scaling_factor = 1.0;
};
// deepseek_v3 and its relatives: sigmoid scores with a selection bias, groups, shared experts.
MoeSpec ReadSigmoidMoe(ConfigReader& config, const SigmoidMoeDefaults& defaults);

// Replaces the feed-forward part of sparse layers.
void ApplyMoe(const std::vector<bool>& sparse, const MoeSpec& moe, ModelSpec& spec);

}  // namespace tq

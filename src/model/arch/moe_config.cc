#include "model/arch/moe_config.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace tq {
namespace {

constexpr int64_t kMaxExperts = 8192;

void CheckTopK(ConfigReader& config, const RouterRule& rule) {
  if (rule.top_k <= rule.num_experts) return;
  config.Fail(Corrupt(config.where() + ": expected no more experts per token than the " +
                      std::to_string(rule.num_experts) + " there are, found " +
                      std::to_string(rule.top_k)));
}

// Sizes, groups and shared experts, which both deepseek routers spell alike.
MoeSpec ReadGroupedMoe(ConfigReader& config, const SigmoidMoeDefaults& defaults) {
  MoeSpec moe;
  moe.router.num_experts =
      ReadSize(config, {"n_routed_experts", "num_experts", "num_local_experts"},
               defaults.num_experts, kMaxExperts);
  moe.router.top_k = ReadSize(config, {"num_experts_per_tok", "num_experts_per_token"},
                              defaults.top_k, kMaxExperts);
  moe.router.num_groups = ReadSize(config, {"n_group", "num_expert_group"}, 1, kMaxExperts);
  moe.router.top_groups = ReadSize(config, {"topk_group"}, 1, kMaxExperts);
  moe.router.scale =
      static_cast<float>(config.Number("routed_scaling_factor", defaults.routed_scaling_factor));
  CheckTopK(config, moe.router);
  if (moe.router.num_experts % moe.router.num_groups != 0 ||
      moe.router.top_groups > moe.router.num_groups ||
      moe.router.top_k > moe.router.num_experts / moe.router.num_groups * moe.router.top_groups) {
    config.Fail(Corrupt(config.where() +
                        ": n_group, topk_group: expected groups of equal size that "
                        "hold the experts per token"));
  }
  moe.expert.intermediate_size =
      ReadSize(config, {"moe_intermediate_size"}, defaults.moe_intermediate_size);
  const int64_t shared =
      config.IntOf({"n_shared_experts", "num_shared_experts"}, defaults.num_shared_experts);
  if (shared < 0 || shared > 64) {
    config.Fail(Corrupt(config.where() + ": n_shared_experts: expected 0..64, found " +
                        std::to_string(shared)));
  } else if (shared > 0) {
    moe.shared_name = "shared_experts";
    moe.shared.intermediate_size = shared * moe.expert.intermediate_size;
  }
  config.Ignore({"num_nextn_predict_layers", "num_mtp_layers", "use_grouped_topk", "ep_size",
                 "aux_loss_alpha", "seq_aux"});
  return moe;
}

}  // namespace

std::vector<bool> ReadSparseLayers(ConfigReader& config, size_t num_layers, int64_t first_dense) {
  std::vector<bool> sparse(num_layers, true);
  const std::vector<int64_t> dense_layers = config.IntList("mlp_only_layers");
  const int64_t step = config.Int("decoder_sparse_step", 1);
  const int64_t first = config.Int("first_k_dense_replace", first_dense);
  const int64_t frequency = config.Int("moe_layer_freq", 1);
  const std::vector<std::string> types = config.StringList("mlp_layer_types");
  if (step < 1 || frequency < 1 || (!types.empty() && types.size() < num_layers)) {
    config.Fail(Corrupt(config.where() +
                        ": expected decoder_sparse_step and moe_layer_freq of 1 or "
                        "more, and one of mlp_layer_types per layer"));
    return sparse;
  }
  for (size_t i = 0; i < num_layers; ++i) {
    const auto layer = static_cast<int64_t>(i);
    if (!types.empty()) {
      sparse[i] = types[i] == "sparse";
      continue;
    }
    const bool listed =
        std::find(dense_layers.begin(), dense_layers.end(), layer) != dense_layers.end();
    sparse[i] = !listed && (layer + 1) % step == 0 && layer >= first && layer % frequency == 0;
  }
  return sparse;
}

MoeSpec ReadQwenMoe(ConfigReader& config, bool shared, bool norm_topk_default) {
  MoeSpec moe;
  moe.router.score = RouterScore::kSoftmax;
  moe.router.num_experts = ReadSize(config, {"num_experts", "num_local_experts"}, 128, kMaxExperts);
  moe.router.top_k = ReadSize(config, {"num_experts_per_tok"}, 8, kMaxExperts);
  moe.router.renormalize = config.Bool("norm_topk_prob", norm_topk_default);
  CheckTopK(config, moe.router);
  moe.expert.intermediate_size = ReadSize(config, {"moe_intermediate_size"}, 768);
  if (shared) {
    moe.shared_name = "shared_expert";
    moe.shared_gate = true;
    moe.shared.intermediate_size = ReadSize(config, {"shared_expert_intermediate_size"}, 512);
  }
  config.Ignore({"router_aux_loss_coef", "output_router_logits"});
  return moe;
}

MoeSpec ReadGroupSoftmaxMoe(ConfigReader& config, bool greedy) {
  MoeSpec moe = ReadGroupedMoe(
      config,
      {.num_experts = 64, .top_k = 6, .moe_intermediate_size = 1408, .num_shared_experts = 2});
  moe.router.score = RouterScore::kSoftmax;
  moe.router.group_by_max = true;
  if (greedy) moe.router.num_groups = moe.router.top_groups = 1;
  config.Ignore({"norm_topk_prob"});  // the reference never applies it
  return moe;
}

MoeSpec ReadSigmoidMoe(ConfigReader& config, const SigmoidMoeDefaults& defaults) {
  MoeSpec moe = ReadGroupedMoe(config, defaults);
  moe.router.score = RouterScore::kSigmoid;
  moe.selection_bias = true;
  const bool renormalize = config.Bool("norm_topk_prob", true);
  moe.router.renormalize = config.Bool("moe_renormalize", renormalize);
  moe.router.renormalize_eps = 1e-20f;
  for (const char* key : {"scoring_func", "score_function", "moe_router_activation_func"}) {
    if (config.String(key, "sigmoid") != "sigmoid") {
      config.Fail(Unsupported(config.where() + ": " + key + ": expected sigmoid"));
    }
  }
  if (config.String("topk_method", "noaux_tc") != "noaux_tc") {
    config.Fail(Unsupported(config.where() + ": topk_method: expected noaux_tc"));
  }
  return moe;
}

void ApplyMoe(const std::vector<bool>& sparse, const MoeSpec& moe, ModelSpec& spec) {
  MoeSpec filled = moe;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!sparse[i]) continue;
    const DenseFfnSpec& dense = DenseOf(spec.blocks[i]);
    // Experts compute as the dense layers do, at their own width.
    for (DenseFfnSpec* part : {&filled.expert, &filled.shared}) {
      const int64_t width = part->intermediate_size;
      *part = dense;
      part->intermediate_size = width;
    }
    spec.blocks[i].ffn = filled;
  }
}

}  // namespace tq

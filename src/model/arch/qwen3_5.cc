// qwen3_5 (dense) and qwen3_5_moe: Gated DeltaNet and gated attention. The text part; the config
// may be the text_config of a multimodal one.
#include <nlohmann/json.hpp>

#include "model/arch/qwen_hybrid.h"

namespace tq {

ModelSpec ParseQwen35(ConfigReader& config) {
  if (!config.Has("intermediate_size")) {
    config.Fail(Corrupt(config.where() + ": intermediate_size is missing"));
  }
  // Writers of dense configs leave the keys of the sparse ones in.
  config.Ignore({"norm_topk_prob", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
                 "shared_expert_intermediate_size", "decoder_sparse_step", "mlp_only_layers"});
  return ReadQwenHybrid(config, false);
}

ModelSpec ParseQwen35Moe(ConfigReader& config) {
  ModelSpec spec = ReadQwenHybrid(config, false);
  if (!config.status().ok()) return spec;
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 0), ReadQwenMoe(config, true, true), spec);
  return spec;
}

}  // namespace tq

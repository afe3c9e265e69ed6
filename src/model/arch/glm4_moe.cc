// glm4_moe: half rotary attention, the router of DeepSeek-V3.
#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseGlm4Moe(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {.rms_norm_eps = 1e-5f});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {.theta = 10000.0,
                          .max_position_embeddings = spec.max_position_embeddings,
                          .partial_rotary_factor = 0.5})};
  const bool bias = config.Bool("attention_bias", false);
  const bool qk_norm = config.Bool("use_qk_norm", false);
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = bias;
    if (qk_norm) mixer.qk_norm = block.norm;
  }
  const MoeSpec moe = ReadSigmoidMoe(config, {.num_experts = 128, .moe_intermediate_size = 1408});
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 1), moe, spec);
  return spec;
}

}  // namespace tq

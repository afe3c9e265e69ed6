// sarvam_moe: grouped attention with head norms, the router of DeepSeek-V3.
#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseSarvamMoe(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {10000.0, spec.max_position_embeddings})};
  const bool attention_bias = config.Bool("attention_bias", false);
  const bool qkv_bias = config.Bool("use_qkv_bias", attention_bias);
  const bool o_bias = config.Bool("use_bias", attention_bias);
  const bool qk_norm = config.Bool("use_qk_norm", true);
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = qkv_bias;
    mixer.o_bias = o_bias;
    if (qk_norm) mixer.qk_norm = block.norm;
  }
  const MoeSpec moe = ReadSigmoidMoe(config, {.num_experts = 128,
                                              .top_k = 6,
                                              .moe_intermediate_size = 1024,
                                              .routed_scaling_factor = 2.5});
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 1), moe, spec);
  return spec;
}

}  // namespace tq

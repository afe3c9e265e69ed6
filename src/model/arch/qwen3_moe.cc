// qwen3_moe: qwen3 with experts, no shared one. use_sliding_window makes every layer slide.
#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseQwen3Moe(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {.intermediate_size = 6144});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {10000.0, spec.max_position_embeddings})};
  const bool bias = config.Bool("attention_bias", false);
  const bool use_window = config.Bool("use_sliding_window", false);
  const auto window = static_cast<int>(config.Int("sliding_window", 4096));
  config.Ignore({"max_window_layers"});
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.qk_norm = block.norm;
    mixer.sliding_window = use_window ? window : 0;
  }
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 0), ReadQwenMoe(config, false, false),
           spec);
  return spec;
}

}  // namespace tq

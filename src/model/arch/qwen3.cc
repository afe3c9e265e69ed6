// qwen3: per-head norms of q and k before rope; head_dim stands by itself.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/arch/decoder_config.h"
#include "model/arch/qwen_window.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseQwen3(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {.head_dim = 128});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {10000.0, spec.max_position_embeddings})};
  const bool bias = config.Bool("attention_bias", false);
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.qk_norm = block.norm;
  }
  ApplyQwenWindow(config, spec);
  return spec;
}

}  // namespace tq

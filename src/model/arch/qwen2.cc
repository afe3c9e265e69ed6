// qwen2: biases on q, k, v; a window on the upper layers when use_sliding_window is set.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/arch/decoder_config.h"
#include "model/arch/qwen_window.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseQwen2(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {10000.0, spec.max_position_embeddings})};
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = true;
  }
  ApplyQwenWindow(config, spec);
  return spec;
}

}  // namespace tq

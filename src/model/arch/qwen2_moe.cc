// qwen2_moe: qwen2 with experts and a gated shared expert.
#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseQwen2Moe(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {.num_attention_heads = 16, .intermediate_size = 5632});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {10000.0, spec.max_position_embeddings})};
  const bool bias = config.Bool("qkv_bias", true);
  const bool use_window = config.Bool("use_sliding_window", false);
  const int64_t max_window_layers = config.Int("max_window_layers", 28);
  const auto window = static_cast<int>(config.Int("sliding_window", 4096));
  std::vector<bool> fallback;  // not the rule of qwen2
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    fallback.push_back(i % 2 == 0 && static_cast<int64_t>(i) < max_window_layers);
  }
  const std::vector<bool> sliding = ReadSlidingLayers(config, spec.blocks.size(), fallback);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& mixer = AttentionOf(spec.blocks[i]);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = bias;
    mixer.sliding_window = use_window && sliding[i] ? window : 0;
  }
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 0), ReadQwenMoe(config, true, false), spec);
  return spec;
}

}  // namespace tq

// llama (also SmolLM2 and other checkpoints that call themselves llama).
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/arch/decoder_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseLlama(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {});
  if (!config.status().ok()) return spec;
  const bool attention_bias = config.Bool("attention_bias", false);
  const bool mlp_bias = config.Bool("mlp_bias", false);
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {10000.0, spec.max_position_embeddings})};
  const std::vector<bool> sliding =
      ReadSlidingLayers(config, spec.blocks.size(), std::vector<bool>(spec.blocks.size(), false));
  const auto window = static_cast<int>(config.Int("sliding_window", 0));
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& mixer = AttentionOf(spec.blocks[i]);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = attention_bias;
    mixer.sliding_window = sliding[i] ? window : 0;
    DenseOf(spec.blocks[i]).bias = mlp_bias;
  }
  // The rotary pairing of the original Llama release; converted checkpoints store halves.
  if (config.Bool("rope_interleaved", false) || config.Bool("rope_traditional", false)) {
    config.Fail(
        Unsupported(config.where() + ": interleaved rope is not supported for model_type llama"));
  }
  return spec;
}

}  // namespace tq

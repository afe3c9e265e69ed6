// mistral: llama with a sliding window on every layer when the config names one.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/arch/decoder_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseMistral(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {10000.0, spec.max_position_embeddings})};
  const auto window = static_cast<int>(config.Int("sliding_window", 0));
  const std::vector<bool> sliding =
      ReadSlidingLayers(config, spec.blocks.size(), std::vector<bool>(spec.blocks.size(), true));
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionOf(spec.blocks[i]).sliding_window = sliding[i] ? window : 0;
  }
  return spec;
}

// ministral3 (also the text part of mistral3): full attention; queries grow with the logarithm of
// the position.
ModelSpec ParseMinistral3(ConfigReader& config) {
  ModelSpec spec = ParseMistral(config);
  if (!config.status().ok()) return spec;
  const Json* rope = config.Raw("rope_parameters");
  if (rope == nullptr || !rope->is_object() || !rope->contains("llama_4_scaling_beta")) return spec;
  ConfigReader dict(*rope, config.where() + ": rope_parameters");
  const auto beta = static_cast<float>(dict.Number("llama_4_scaling_beta", 0));
  const int64_t original =
      dict.Int("original_max_position_embeddings", spec.max_position_embeddings);
  config.Fail(dict.status());
  if (original < 1) {
    config.Fail(Corrupt(dict.where() + ": original_max_position_embeddings: expected 1 or more"));
    return spec;
  }
  for (BlockSpec& block : spec.blocks) {
    AttentionOf(block).position_beta = beta;
    AttentionOf(block).position_original = original;
  }
  return spec;
}

}  // namespace tq

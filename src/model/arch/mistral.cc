// mistral: llama with a sliding window on every layer when the config names one.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/arch/decoder_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseMistral(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {});
  if (!config.status().ok()) return spec;
  spec.ropes = {
      ReadRope(config, spec.blocks[0].mixer.head_dim, {10000.0, spec.max_position_embeddings})};
  const auto window = static_cast<int>(config.Int("sliding_window", 0));
  const std::vector<bool> sliding =
      ReadSlidingLayers(config, spec.blocks.size(), std::vector<bool>(spec.blocks.size(), true));
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    spec.blocks[i].mixer.sliding_window = sliding[i] ? window : 0;
  }
  return spec;
}

}  // namespace tq

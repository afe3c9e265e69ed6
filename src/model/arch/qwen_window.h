// The window rule of the qwen families.
#pragma once

#include "model/arch/decoder_config.h"

namespace tq {

// Off unless use_sliding_window; then layers i >= max_window_layers slide, or those that
// layer_types names.
inline void ApplyQwenWindow(ConfigReader& config, ModelSpec& spec) {
  const bool use = config.Bool("use_sliding_window", false);
  const int64_t first = config.Int("max_window_layers", 28);
  const auto window = static_cast<int>(config.Int("sliding_window", 4096));
  std::vector<bool> fallback;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    fallback.push_back(use && static_cast<int64_t>(i) >= first);
  }
  const std::vector<bool> sliding = ReadSlidingLayers(config, spec.blocks.size(), fallback);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionOf(spec.blocks[i]).sliding_window = use && sliding[i] ? window : 0;
  }
}

}  // namespace tq

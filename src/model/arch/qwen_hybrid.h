// What the hybrids of the qwen families share: Gated DeltaNet layers and gated attention in a
// pattern, norms stored as w - 1.
#pragma once

#include "model/arch/moe_config.h"

namespace tq {

// Sizes, rope, norms, and the mixers by layer_types (else every full_attention_interval-th layer is
// attention). The feed-forward parts stay dense. `attention_names`: values of layer_types beside
// "full_attention" that mean attention.
ModelSpec ReadQwenHybrid(ConfigReader& config, bool fused_projections,
                         std::initializer_list<std::string_view> attention_names = {});

}  // namespace tq

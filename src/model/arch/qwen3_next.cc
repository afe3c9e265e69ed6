// qwen3_next: Gated DeltaNet with fused projections, gated attention, experts.
#include <nlohmann/json.hpp>

#include "model/arch/qwen_hybrid.h"

namespace tq {

ModelSpec ParseQwen3Next(ConfigReader& config) {
  ModelSpec spec = ReadQwenHybrid(config, true);
  if (!config.status().ok()) return spec;
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 0), ReadQwenMoe(config, true, true), spec);
  return spec;
}

}  // namespace tq

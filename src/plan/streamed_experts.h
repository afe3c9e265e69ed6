// What a model with experts would take if they stayed on the disk and were read as the router picks
// them: an estimate beside the plan. This engine keeps all experts in memory, so no verdict and no
// recommended flag stands on it.
#pragma once

#include <cstdint>

#include "plan/recipe_sizes.h"

namespace tq {

struct StreamedExperts {
  int64_t least_bytes = 0;       // peak with the smallest useful budget for experts
  int64_t budget_bytes = 0;      // what the machine leaves for experts beside the rest
  double tokens_per_second = 0;  // at most, with that budget; 0: the disk's speed is not known
};

struct StreamingMachine {
  int64_t memory_bytes = 0;  // what a program may take
  double bandwidth = 0;      // of the memory, bytes per second
  double disk_speed = 0;     // bytes per second; 0: not known
};

// size: with expert_bytes > 0. other_bytes: what the engine takes beside weights. Every expert is
// taken to be picked equally often, so a budget for a share of them saves that share of the reads;
// real routers favour some, and are faster.
StreamedExperts EstimateStreaming(const RecipeSize& size, int64_t other_bytes,
                                  const StreamingMachine& machine);

}  // namespace tq

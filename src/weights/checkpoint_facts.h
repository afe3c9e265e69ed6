// What only a checkpoint's tensors tell about the model: config.json is silent on it.
#pragma once

#include <vector>

namespace tq {

struct SourceTensor;

struct CheckpointFacts {
  bool has_lm_head = false;
  // Norms of the (1 + w) kind hold 1 + w: MLX folds the one into the weights of the Qwen hybrids.
  bool norms_include_one = false;
};

// `stored`: the tensors under the names and in the shapes of the files. True when the checkpoint
// has gated delta nets in the layout of MLX; who converted them folded the norms as well. Norms of
// the draft head (mtp.*) are never folded.
bool NormsIncludeOne(const std::vector<SourceTensor>& stored);

}  // namespace tq

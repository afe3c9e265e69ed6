// The indexer of qwen4_exp: one key per block of tokens (their mean) decides which blocks a query
// attends to.
#pragma once

#include "model/block.h"
#include "model/mixers/token_index.h"

namespace tq {

class BlockIndex {
 public:
  using Selection = IndexSelection;
  static Result<BlockIndex> Load(const BlockIndexSpec& spec, int rope, const std::string& prefix,
                                 int64_t hidden_size, TensorLoader& loader);
  // paged[1]: the key of each block, at the place of the block's last token. state: the raw keys of
  // the last block - 1 tokens, then the position of the current block's first token, on each axis.
  void AddNeeds(const KvSettings& settings, CacheNeeds& needs) const;
  Selection Select(StepContext& step, const float* x, LayerCache& cache) const;

 private:
  void AppendKeys(StepContext& step, const float* raw, LayerCache& cache) const;
  int64_t mean_state() const { return int64_t{spec_.block - 1} * spec_.head_dim; }
  // first [kPositionAxes, T]: of the token that begins each token's block; one_axis: every axis is
  // the place in the sequence.
  void BlockPositions(const StepPlan& plan, bool one_axis, StateRef state, int32_t* first) const;

  BlockIndexSpec spec_;
  int rope_ = 0;
  Linear index_qk_proj_;
  Norm q_norm_, k_norm_;
  std::vector<float> mean_;  // [block, head_dim]: the convolution that averages a block
};

}  // namespace tq

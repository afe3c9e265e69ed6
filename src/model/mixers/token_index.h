// The indexer of deepseek_v32: small keys of their own decide which tokens a query attends to.
#pragma once

#include "model/block.h"

namespace tq {

// Which cached positions each query sees (backend/ops.h, AttentionArgs::selected).
struct IndexSelection {
  const uint64_t* bits = nullptr;
  int64_t stride = 0;
};

// Words per query that cover every position of the plan.
int64_t SelectionStride(const StepPlan& plan);

class TokenIndex {
 public:
  using Selection = IndexSelection;
  static Result<TokenIndex> Load(const TokenIndexSpec& spec, int rope, const std::string& prefix,
                                 int64_t hidden_size, int64_t q_lora_rank, TensorLoader& loader);
  void AddNeeds(const KvSettings& settings, CacheNeeds& needs) const;
  // Appends the keys of x; latent: the normed query latent [T, q_lora_rank].
  Selection Select(StepContext& step, const float* x, const float* latent, LayerCache& cache) const;

 private:
  TokenIndexSpec spec_;
  int rope_ = 0;
  Linear wq_b_, wk_, weights_proj_;
  std::vector<float> k_norm_, k_norm_bias_;
};

}  // namespace tq

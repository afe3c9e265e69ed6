// Mamba2: a causal convolution, a diagonal state-space recurrence, a gated norm per group.
// Dao and Gu, "Transformers are SSMs", 2024.
#pragma once

#include "model/block.h"

namespace tq {

class Mamba2 : public Mixer {
 public:
  static Result<std::unique_ptr<Mixer>> Load(const Mamba2Spec& spec, const std::string& prefix,
                                             int64_t hidden_size, TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override;
  void Forward(StepContext& step, const float* x, float* y, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  explicit Mamba2(const Mamba2Spec& spec) : spec_(spec) {}
  int64_t width() const { return int64_t{spec_.num_heads} * spec_.head_dim; }
  int64_t group_width() const { return int64_t{spec_.num_groups} * spec_.state_size; }
  int64_t channels() const { return width() + 2 * group_width(); }
  int64_t conv_state() const { return (spec_.conv_kernel - 1) * channels(); }

  Mamba2Spec spec_;
  Linear in_proj_, out_proj_;
  std::vector<float> conv_;       // [K, C]
  std::vector<float> conv_bias_;  // [C]
  std::vector<float> dt_bias_;    // [H]
  std::vector<float> a_;          // [H]: exp(A_log)
  std::vector<float> d_;          // [H]
  std::vector<float> norm_;       // [width]
};

}  // namespace tq

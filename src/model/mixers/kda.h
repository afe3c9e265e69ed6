// Kimi Delta Attention: the gated delta rule with one decay per key channel. Kimi Linear, 2025.
#pragma once

#include "model/block.h"

namespace tq {

class Kda : public Mixer {
 public:
  static Result<std::unique_ptr<Mixer>> Load(const KdaSpec& spec, const std::string& prefix,
                                             int64_t hidden_size, TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override;
  void Forward(StepContext& step, const float* x, float* y, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  // q, k or v: a projection and its convolution.
  struct Branch {
    Linear proj;
    std::vector<float> conv;  // [K, P]
  };

  explicit Kda(const KdaSpec& spec) : spec_(spec) {}
  int64_t width() const { return int64_t{spec_.num_heads} * spec_.head_dim; }
  int64_t conv_state() const { return (spec_.conv_kernel - 1) * width(); }
  Status LoadDecay(const std::string& prefix, int64_t hidden_size, TensorLoader& loader);
  void LogDecay(StepContext& step, float* a) const;
  // gate [T, P] or null: also the low-rank output gate.
  void ProjectLowRank(StepContext& step, const float* x, float* decay, float* gate) const;

  KdaSpec spec_;
  Branch branches_[3];
  Linear f_a_proj_, f_b_proj_, b_proj_, g_proj_, g_a_proj_, g_b_proj_, o_proj_;
  std::vector<float> dt_bias_;  // [P]
  std::vector<float> decay_;    // [P]: exp(A_log) of the channel's head; negated when unbounded
  std::vector<float> o_norm_;   // [d]
  std::vector<float> q_scale_, k_scale_;
};

}  // namespace tq

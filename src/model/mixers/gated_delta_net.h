// Gated DeltaNet: a causal convolution, then the gated delta rule with one decay per head, a gated
// norm. Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024.
#pragma once

#include "model/block.h"

namespace tq {

class GatedDeltaNet : public Mixer {
 public:
  static Result<std::unique_ptr<Mixer>> Load(const GatedDeltaNetSpec& spec,
                                             const std::string& prefix, int64_t hidden_size,
                                             TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override;
  void Forward(StepContext& step, const float* x, float* y, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  // The projections of a step: qkv [T, C] before the convolution, z [T, V], b and a [T, Hv].
  struct Projected {
    float* qkv;
    float* z;
    float* b;
    float* a;
  };

  explicit GatedDeltaNet(const GatedDeltaNetSpec& spec) : spec_(spec) {}
  int64_t key_width() const { return int64_t{spec_.num_key_heads} * spec_.key_head_dim; }
  int64_t value_width() const { return int64_t{spec_.num_value_heads} * spec_.value_head_dim; }
  int64_t channels() const { return 2 * key_width() + value_width(); }
  int64_t conv_state() const { return (spec_.conv_kernel - 1) * channels(); }
  Projected ProjectInputs(StepContext& step, const float* x) const;
  void SplitFused(StepContext& step, const float* qkvz, const float* ba,
                  const Projected& out) const;

  GatedDeltaNetSpec spec_;
  Linear in_proj_qkv_, in_proj_z_, in_proj_b_,
      in_proj_a_;  // fused: qkvz in the first, ba in the third
  Linear out_proj_;
  std::vector<float> conv_;               // [K, C]
  std::vector<float> dt_bias_;            // [Hv]
  std::vector<float> decay_;              // [Hv]: -exp(A_log)
  std::vector<float> norm_;               // [dv]
  std::vector<float> q_scale_, k_scale_;  // [dk]: an RMS norm with these is the scaled l2 norm
};

}  // namespace tq

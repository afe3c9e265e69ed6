// A block of kimi_k3: each part reads a softmax mix of the residual and of snapshots of earlier
// ones.
#pragma once

#include "model/block.h"

namespace tq {

// The mix itself; the head of the model has one more. Per token, no state.
class ResidualMix {
 public:
  // <path>_norm.weight [hidden] and <path>_proj.weight [1, hidden].
  static Result<ResidualMix> Load(const std::string& path, float eps, int64_t hidden,
                                  TensorLoader& loader);
  // out [T, hidden] = mix of the snapshots and x.
  void Apply(StepContext& step, const Residuals& residuals, float* out) const;

 private:
  float eps_ = 0;
  std::vector<float> omega_;  // [hidden]
};

class AttendBlock : public Block {
 public:
  static Result<std::unique_ptr<Block>> Load(const ModelSpec& model, const BlockSpec& spec,
                                             TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override { return mixer_->Needs(settings); }
  void Forward(StepContext& step, Residuals& residuals, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  int64_t hidden_ = 0;
  bool snapshot_ = false;
  ResidualMix mixer_mix_, ffn_mix_;
  Norm mixer_norm_, ffn_norm_;
  std::unique_ptr<Mixer> mixer_;
  std::unique_ptr<Ffn> ffn_;
};

}  // namespace tq

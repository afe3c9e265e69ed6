// Gated feed-forward: down(activation(gate x) * up x), with optional biases.
#pragma once

#include "model/block.h"

namespace tq {

void AppendDenseFfnTensors(const DenseFfnSpec& spec, const std::string& prefix, int64_t hidden_size,
                           std::vector<TensorNeed>& out);

class DenseFfn : public Ffn {
 public:
  static Result<std::unique_ptr<Ffn>> Load(const DenseFfnSpec& spec, const std::string& prefix,
                                           int64_t hidden_size, WeightLoader& loader);
  void Forward(StepContext& step, const float* x, float* y) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  explicit DenseFfn(const DenseFfnSpec& spec) : spec_(spec) {}
  DenseFfnSpec spec_;
  Linear gate_proj_, up_proj_, down_proj_;
};

}  // namespace tq

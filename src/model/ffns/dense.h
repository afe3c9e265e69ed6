// Feed-forward: down(activation(gate x) * up x), or down(relu(up x)^2), with optional biases.
#pragma once

#include "model/block.h"

namespace tq {

class DenseFfn : public Ffn {
 public:
  static Result<std::unique_ptr<Ffn>> Load(const DenseFfnSpec& spec, const std::string& prefix,
                                           int64_t hidden_size, TensorLoader& loader);
  void Forward(StepContext& step, const float* x, const float* router_x, float* y) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  explicit DenseFfn(const DenseFfnSpec& spec) : spec_(spec) {}
  DenseFfnSpec spec_;
  Linear gate_proj_, up_proj_, down_proj_;
};

// The part between the matrices, n values each; gate is null for an ungated one. The result is in
// up.
void ActivateFfn(StepContext& step, const DenseFfnSpec& spec, const float* gate, float* up,
                 int64_t n);

}  // namespace tq

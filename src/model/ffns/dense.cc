#include "model/ffns/dense.h"

namespace tq {

void AppendDenseFfnTensors(const DenseFfnSpec& spec, const std::string& prefix, int64_t hidden_size,
                           std::vector<TensorNeed>& out) {
  AppendLinearTensors(prefix + "gate_proj", spec.intermediate_size, hidden_size, spec.bias, out);
  AppendLinearTensors(prefix + "up_proj", spec.intermediate_size, hidden_size, spec.bias, out);
  AppendLinearTensors(prefix + "down_proj", hidden_size, spec.intermediate_size, spec.bias, out);
}

Result<std::unique_ptr<Ffn>> DenseFfn::Load(const DenseFfnSpec& spec, const std::string& prefix,
                                            int64_t hidden_size, WeightLoader& loader) {
  std::unique_ptr<DenseFfn> out(new DenseFfn(spec));
  const int64_t inner = spec.intermediate_size;
  TQ_ASSIGN_OR_RETURN(out->gate_proj_,
                      loader.LoadLinear(prefix + "gate_proj", inner, hidden_size, spec.bias));
  TQ_ASSIGN_OR_RETURN(out->up_proj_,
                      loader.LoadLinear(prefix + "up_proj", inner, hidden_size, spec.bias));
  TQ_ASSIGN_OR_RETURN(out->down_proj_,
                      loader.LoadLinear(prefix + "down_proj", hidden_size, inner, spec.bias));
  return std::unique_ptr<Ffn>(std::move(out));
}

void DenseFfn::Forward(StepContext& step, const float* x, float* y) const {
  const ScratchScope scope(step.scratch);
  const int64_t num_tokens = step.plan.num_tokens();
  const auto n = static_cast<size_t>(num_tokens * spec_.intermediate_size);
  float* gate = step.scratch.Alloc<float>(n);
  float* up = step.scratch.Alloc<float>(n);
  if (step.input_observer != nullptr) {
    step.input_observer->OnInput({gate_proj_.name, up_proj_.name}, x, num_tokens,
                                 gate_proj_.weight->cols());
  }
  const MatMulArgs in[] = {gate_proj_.Args(x, gate, num_tokens), up_proj_.Args(x, up, num_tokens)};
  step.backend.MatMul(in, step.scratch);
  step.backend.Glu({spec_.activation, gate, up, gate, static_cast<int64_t>(n)});
  if (step.input_observer != nullptr) {
    step.input_observer->OnInput({down_proj_.name}, gate, num_tokens, spec_.intermediate_size);
  }
  const MatMulArgs out[] = {down_proj_.Args(gate, y, num_tokens)};
  step.backend.MatMul(out, step.scratch);
}

void DenseFfn::VisitWeights(WeightVisitor visit, void* context) const {
  for (const Linear* linear : {&gate_proj_, &up_proj_, &down_proj_}) {
    visit(context, linear->name, *linear->weight);
  }
}

}  // namespace tq

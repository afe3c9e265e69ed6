#include "model/ffns/dense.h"

namespace tq {

Result<std::unique_ptr<Ffn>> DenseFfn::Load(const DenseFfnSpec& spec, const std::string& prefix,
                                            int64_t hidden_size, TensorLoader& loader) {
  std::unique_ptr<DenseFfn> out(new DenseFfn(spec));
  const int64_t inner = spec.intermediate_size;
  if (spec.gated) {
    TQ_ASSIGN_OR_RETURN(out->gate_proj_,
                        loader.LoadLinear(prefix + "gate_proj", inner, hidden_size, spec.bias));
  }
  TQ_ASSIGN_OR_RETURN(out->up_proj_,
                      loader.LoadLinear(prefix + "up_proj", inner, hidden_size, spec.bias));
  TQ_ASSIGN_OR_RETURN(out->down_proj_,
                      loader.LoadLinear(prefix + "down_proj", hidden_size, inner, spec.bias));
  return std::unique_ptr<Ffn>(std::move(out));
}

void ActivateFfn(StepContext& step, const DenseFfnSpec& spec, const float* gate, float* up,
                 int64_t n) {
  if (spec.gated) {
    step.backend.Glu({spec.activation, gate, up, up, n, spec.alpha, spec.limit});
  } else {
    step.backend.Map(
        {.x = up, .x_stride = n, .out = up, .num_rows = 1, .n = n, .fn = MapFn::kRelu2});
  }
}

void DenseFfn::Forward(StepContext& step, const float* x, const float*, float* y) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t n = rows * spec_.intermediate_size;
  float* up = step.Floats(n);
  float* gate = spec_.gated ? step.Floats(n) : nullptr;
  if (spec_.gated) {
    Project(step, x, rows, {{&gate_proj_, gate}, {&up_proj_, up}});
  } else {
    Project(step, x, rows, {{&up_proj_, up}});
  }
  ActivateFfn(step, spec_, gate, up, n);
  Project(step, up, rows, {{&down_proj_, y}});
}

void DenseFfn::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context, {&gate_proj_, &up_proj_, &down_proj_});
}

}  // namespace tq

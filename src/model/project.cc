#include "model/project.h"

#include <array>

namespace tq {

void Project(StepContext& step, const float* x, int64_t num_rows,
             std::initializer_list<Projection> projections) {
  constexpr size_t kMax = 8;
  TQ_CHECK(projections.size() <= kMax);
  std::array<std::string_view, kMax> names;
  std::array<MatMulArgs, kMax> args;
  size_t n = 0;
  for (const Projection& projection : projections) {
    if (projection.linear->weight == nullptr) continue;
    names[n] = projection.linear->name;
    args[n++] = projection.linear->Args(x, projection.y, num_rows);
  }
  if (step.input_observer != nullptr) {
    step.input_observer->OnInput({names.data(), n}, x, num_rows, args[0].weight->cols());
  }
  step.backend.MatMul({args.data(), n}, step.scratch);
}

}  // namespace tq

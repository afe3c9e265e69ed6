// Project: several matrices applied to the same activations, with the observer told first.
#pragma once

#include <initializer_list>

#include "model/step_context.h"
#include "weights/tensor_need.h"

namespace tq {

struct Projection {
  const Linear* linear;
  float* y;  // [num_rows, linear rows]
};

// x [num_rows, cols]. At most eight; those whose linear has no weight are left out.
void Project(StepContext& step, const float* x, int64_t num_rows,
             std::initializer_list<Projection> projections);

}  // namespace tq

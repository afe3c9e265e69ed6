// SizedModel: a checkpoint's model as a plan sees it: every weight has the size, layout and kernel
// that a load would give it, none has memory, and nothing behind the files' headers was read.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "base/status.h"
#include "model/model.h"
#include "weights/source.h"

namespace tq {

struct SizedModel {
  std::unique_ptr<Backend> backend;  // backend/sizing.h
  std::unique_ptr<const Model> model;
  int64_t num_matrices = 0;
  int64_t float_bytes = 0;  // norms, biases and the like
  int64_t load_peak = 0;    // weights, and what passes through memory while they are prepared
};

// Errors: as Model::Load, but for what values tell; kUnsupported when the backend has no sizes.
Result<SizedModel> SizeModel(const WeightSource& source, const Backend& backend);

}  // namespace tq

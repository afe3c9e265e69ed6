// What one step needs beside weights and caches, so that it can be charged before anything runs.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/status.h"
#include "model/model.h"

namespace tq {

// The largest step of an engine.
struct StepShape {
  int64_t context = 0;        // tokens of a sequence
  int64_t prefill_chunk = 0;  // of one sequence, while
  int64_t max_sequences = 1;  // all others decode
};

// Scratch memory of such a step, told by the model's own code on the backend's sizes
// (Backend::Sizing); a backend that has none computes the step. Errors: kOutOfMemory.
Result<int64_t> MeasureWorkspace(const Model& model, Backend& backend, const KvSettings& settings,
                                 const StepShape& shape);

}  // namespace tq

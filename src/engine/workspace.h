// What one step needs beside weights and caches, so that it can be charged before anything runs.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/status.h"
#include "model/model.h"

namespace tq {

// Scratch memory of a step of kPageTokens tokens in a sequence of at most `context` tokens,
// measured on such a step. A longer one needs no more than in proportion. Errors: kOutOfMemory.
Result<int64_t> MeasureWorkspace(const Model& model, Backend& backend, KvType type,
                                 int64_t context);

}  // namespace tq

// What a model would take after each of the known conversions, from headers alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "model/spec.h"
#include "weights/source.h"

namespace tq {

struct RecipeSize {
  std::string name = {};       // for convert --recipe; "" for the checkpoint as it is
  std::string text = {};       // what it is for
  std::string quality = {};    // what so few bits cost, in a few words
  double bits_per_weight = 0;  // of everything
  double matrix_bits = 0;      // of the matrices that are quantized
  int64_t file_bytes = 0;
  int64_t prepared_bytes = 0;       // norms and the like included
  int64_t decode_bytes = 0;         // of weights that a token reads
  int64_t expert_bytes = 0;         // of prepared_bytes: routed experts
  int64_t expert_decode_bytes = 0;  // of decode_bytes
};

// Most bits of the matrices first, then of everything; each size once. backend: Backend::Sizing.
// Errors: as PlanConvert, when no recipe can be planned (the checkpoint is TurboQuant already).
Result<std::vector<RecipeSize>> SizeRecipes(const WeightSource& source, const ModelSpec& model,
                                            Backend& backend);

}  // namespace tq

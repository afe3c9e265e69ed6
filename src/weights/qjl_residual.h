// The one-bit residual that some TurboQuant checkpoints carry beside their codes (path.qjl_packed,
// .qjl_norms, .qjl_signs): what its product with an activation adds, as a term of the weights.
#pragma once

#include <string>
#include <vector>

#include "weights/source.h"

namespace tq {

// codes: the matrix without its residual. out: f32 [rows, cols], codes and residual, in the basis
// of the codes. Errors: kNotFound, kCorrupt.
Status AddQjlResidual(const WeightSource& source, const std::string& path,
                      const StoredMatrix& codes, std::vector<std::byte>& out);

}  // namespace tq

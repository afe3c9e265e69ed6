// The parts of a TurboQuant matrix in a checkpoint (path.weight, .scales, .codebook, .signs) as one
// StoredMatrix. Widths, group and rotation come from shapes and stored signs, never from the
// config. A residual beside them (qjl_residual.h) is not part of it: use ReadMatrix for the weights
// themselves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weights/matrix_tensors.h"
#include "weights/source.h"

namespace tq {

struct TurboQuantTensors {
  StoredMatrix matrix;  // its spans point into the vectors below and into the source
  std::vector<float> codebook;
  std::vector<float> signs;
};

// True when `path` is stored in this format (it has a codebook).
bool IsTurboQuant(const WeightSource& source, const std::string& path);

// config_rotates: quantization.rotation of config.json is not "none".
// Errors: kCorrupt / kNotFound naming the tensor, expected and found.
Result<TurboQuantTensors> ReadTurboQuant(const WeightSource& source, const std::string& path,
                                         int64_t rows, int64_t cols, bool config_rotates,
                                         MatrixValues values = MatrixValues::kAll);

}  // namespace tq

// Codes with scales in a tensor of their own, as MLX, compressed-tensors and FP8 releases write
// them: from types and shapes to a StoredMatrix.
#pragma once

#include "weights/matrix_tensors.h"

namespace tq {

struct QuantizedParts {
  const SourceTensor* weight;
  const SourceTensor* scales;
  const SourceTensor* biases;        // or null
  const SourceTensor* global_scale;  // or null
  MatrixValues values = MatrixValues::kAll;
};

// Errors: kCorrupt, kUnsupported; the tensor, expected, found.
Status ReadQuantized(const QuantizedParts& parts, int64_t rows, int64_t cols, MatrixTensors& out);

}  // namespace tq

// The tensors that make up one stored matrix (path.weight and what lies beside it) as a
// StoredMatrix, in any format: plain floats, GGUF blocks, TurboQuant, and the quantized formats of
// MLX, compressed-tensors and FP8 releases. The format is told by the tensors that are there, their
// types and shapes, never by config.json. docs/formats/quantized.md lists what is recognized.
#pragma once

#include <string>
#include <vector>

#include "weights/source.h"

namespace tq {

struct MatrixTensors {
  MatrixTensors() = default;
  MatrixTensors(MatrixTensors&&) = default;
  MatrixTensors& operator=(MatrixTensors&&) = default;

  StoredMatrix matrix;                     // points into the source and into the buffers below
  std::vector<const SourceTensor*> parts;  // all that were read, the weight first
  std::vector<float> codebook;
  std::vector<float> signs;
  std::vector<std::byte> weights;  // where the stored form cannot be used as it lies
  std::vector<std::byte> scales;
  std::vector<std::byte> biases;
  int64_t copied_bytes = 0;  // of weights, scales and biases; kShapes: what they would be
};

// What ReadMatrix looks at.
enum class MatrixValues : uint8_t {
  kAll,
  // For plans: shapes and types alone, so that a file may hold nothing behind its header. What
  // values would tell is made up (codebook and signs), and `matrix.data` is not to be read.
  kShapes,
};

// config_rotates: quantization.rotation of config.json is not "none" (TurboQuant).
// Errors: kNotFound, kCorrupt (shapes, types, NaN or infinity), kUnsupported (formats with zero
// points or reordered columns); the tensor, expected, found.
Result<MatrixTensors> ReadMatrix(const WeightSource& source, const std::string& path, int64_t rows,
                                 int64_t cols, bool config_rotates,
                                 MatrixValues values = MatrixValues::kAll);

// What lies in `source` for a matrix `path`, the weight first; nothing is checked.
std::vector<const SourceTensor*> MatrixPartsOf(const WeightSource& source, const std::string& path);

// All weights [rows, cols] as f32, a rotation undone.
std::vector<float> MatrixFloats(const StoredMatrix& matrix);

}  // namespace tq

#include "weights/matrix_tensors.h"

#include <limits>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "weights/qjl_residual.h"
#include "weights/quantized_tensors.h"
#include "weights/turbo_quant_tensors.h"

namespace tq {
namespace {

constexpr const char* kParts[] = {".weight",    ".scales",       ".biases",       ".codebook",
                                  ".signs",     ".global_scale", ".weight_shape", ".qjl_packed",
                                  ".qjl_norms", ".qjl_signs"};

// Beside a weight, these mean a format whose codes are not what they look like.
constexpr const char* kForeignParts[] = {".weight_zero_point", ".weight_g_idx", ".qzeros",
                                         ".g_idx"};

Status ReadPlain(const SourceTensor& weight, int64_t rows, int64_t cols, MatrixValues values,
                 MatrixTensors& out) {
  const std::string where = "tensor " + weight.name + ": ";
  if (weight.shape != Shape{rows, cols}) {
    return Corrupt(where + "expected " + ShapeString({rows, cols}) + " from config.json, found " +
                   ShapeString(weight.shape));
  }
  if (!weight.is_float_like) {
    return Unsupported(where + "expected F32, F16, BF16 or a supported block format, found " +
                       std::string(DTypeName(weight.dtype)));
  }
  if (values == MatrixValues::kShapes) {
    SourceTensor dense = weight;
    dense.value_pitch = 0;
    if (weight.value_pitch != 0) {
      dense.row_pitch = 0;
      out.copied_bytes = rows * cols * static_cast<int64_t>(DTypeBytes(weight.dtype));
    }
    out.matrix = MatrixView(dense);
    return Status::Ok();
  }
  TQ_RETURN_IF_ERROR(CheckFinite(weight));
  out.matrix = MatrixView(weight.value_pitch != 0 ? DenseTensor(weight, out.weights) : weight);
  return Status::Ok();
}

Status ReadTurbo(const WeightSource& source, const std::string& path, int64_t rows, int64_t cols,
                 bool config_rotates, MatrixValues values, MatrixTensors& out) {
  TQ_ASSIGN_OR_RETURN(TurboQuantTensors turbo,
                      ReadTurboQuant(source, path, rows, cols, config_rotates, values));
  out.matrix = turbo.matrix;
  out.codebook = std::move(turbo.codebook);
  out.signs = std::move(turbo.signs);
  out.matrix.codebook = out.codebook;
  out.matrix.signs = out.signs;
  if (source.Find(path + ".qjl_packed") == nullptr) return Status::Ok();
  if (values == MatrixValues::kShapes) {
    out.copied_bytes = rows * cols * static_cast<int64_t>(sizeof(float));
  } else {
    TQ_RETURN_IF_ERROR(AddQjlResidual(source, path, out.matrix, out.weights));
    out.matrix.data = out.weights.data();
  }
  out.matrix.format.codec = CodecId::kF32;
  out.matrix.format.bits = 32;
  out.matrix.format.group = 1;
  out.matrix.row_bytes = cols * 4;
  out.matrix.scales = nullptr;
  out.matrix.codebook = {};
  return Status::Ok();
}

}  // namespace

std::vector<const SourceTensor*> MatrixPartsOf(const WeightSource& source,
                                               const std::string& path) {
  std::vector<const SourceTensor*> out;
  for (const char* part : kParts) {
    if (const SourceTensor* tensor = source.Find(path + part)) out.push_back(tensor);
  }
  return out;
}

Result<MatrixTensors> ReadMatrix(const WeightSource& source, const std::string& path, int64_t rows,
                                 int64_t cols, bool config_rotates, MatrixValues values) {
  constexpr int64_t kMaxSide = std::numeric_limits<int32_t>::max();
  if (rows < 1 || cols < 1 || rows > kMaxSide || cols > kMaxSide) {
    return Corrupt("tensor " + path + ".weight: expected 1 to 2^31 rows and columns, found " +
                   ShapeString({rows, cols}) + " in config.json");
  }
  MatrixTensors out;
  const SourceTensor* weight = source.Find(path + ".weight");
  if (weight == nullptr) {
    return NotFound("tensor " + path + ".weight is missing from " + source.path());
  }
  for (const char* part : kForeignParts) {
    if (source.Find(path + part) == nullptr) continue;
    return Unsupported("tensor " + path + part +
                       ": quantized with zero points or reordered columns, which is not supported: "
                       "start from the unquantized checkpoint");
  }
  if (IsTurboQuant(source, path)) {
    TQ_RETURN_IF_ERROR(ReadTurbo(source, path, rows, cols, config_rotates, values, out));
  } else if (const SourceTensor* scales = source.Find(path + ".scales"); scales != nullptr) {
    const QuantizedParts parts = {.weight = weight,
                                  .scales = scales,
                                  .biases = source.Find(path + ".biases"),
                                  .global_scale = source.Find(path + ".global_scale"),
                                  .values = values};
    TQ_RETURN_IF_ERROR(ReadQuantized(parts, rows, cols, out));
  } else {
    TQ_RETURN_IF_ERROR(ReadPlain(*weight, rows, cols, values, out));
  }
  if (values == MatrixValues::kAll) {
    out.copied_bytes =
        static_cast<int64_t>(out.weights.size() + out.scales.size() + out.biases.size());
  }
  out.parts = MatrixPartsOf(source, path);
  return out;
}

std::vector<float> MatrixFloats(const StoredMatrix& matrix) {
  std::vector<float> out(static_cast<size_t>(matrix.rows * matrix.cols));
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const std::span<float> values(out.data() + row * matrix.cols, static_cast<size_t>(matrix.cols));
    DecodeRow(matrix, row, 0, matrix.cols, values.data());
    if (matrix.format.transform != Transform::kHadamard) continue;
    HadamardInverse(values);
    for (size_t i = 0; i < values.size(); ++i) values[i] = values[i] * matrix.signs[i];
  }
  return out;
}

}  // namespace tq

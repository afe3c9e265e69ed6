#include "weights/qjl_residual.h"

#include <cmath>
#include <cstring>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "codec/qjl.h"

namespace tq {
namespace {

Result<const SourceTensor*> Part(const WeightSource& source, const std::string& name, DType dtype,
                                 const Shape& shape) {
  const SourceTensor* tensor = source.Find(name);
  if (tensor == nullptr) return NotFound("tensor " + name + " is missing from " + source.path());
  if (tensor->dtype != dtype || tensor->shape != shape) {
    return Corrupt("tensor " + name + ": expected " + std::string(DTypeName(dtype)) + " " +
                   ShapeString(shape) + ", found " + std::string(DTypeName(tensor->dtype)) + " " +
                   ShapeString(tensor->shape));
  }
  if (dtype == DType::kF16) TQ_RETURN_IF_ERROR(CheckFinite(*tensor));
  return tensor;
}

}  // namespace

Status AddQjlResidual(const WeightSource& source, const std::string& path,
                      const StoredMatrix& codes, std::vector<std::byte>& out) {
  const int64_t rows = codes.rows;
  const int64_t cols = codes.cols;
  const int64_t words = QjlWords(cols);
  TQ_ASSIGN_OR_RETURN(const SourceTensor* packed,
                      Part(source, path + ".qjl_packed", DType::kU32, {rows, words}));
  TQ_ASSIGN_OR_RETURN(const SourceTensor* norm_tensor,
                      Part(source, path + ".qjl_norms", DType::kF16, {rows}));
  TQ_ASSIGN_OR_RETURN(const SourceTensor* sign_tensor,
                      Part(source, path + ".qjl_signs", DType::kF16, {cols}));
  TQ_ASSIGN_OR_RETURN(const std::vector<float> norms, ReadFloats(*norm_tensor));
  TQ_ASSIGN_OR_RETURN(const std::vector<float> signs, ReadFloats(*sign_tensor));

  // A product adds a * norm * (2 b - 1) . H(signs * x): the weights gain
  // a * norm * signs * H^T(2 b - 1), a = sqrt(pi / 2) / sqrt(cols).
  constexpr double kHalfPi = 1.5707963267948966;
  const auto a = static_cast<float>(std::sqrt(kHalfPi / static_cast<double>(cols)));
  out.resize(static_cast<size_t>(rows * cols) * sizeof(float));
  std::vector<float> row_values(static_cast<size_t>(cols));
  std::vector<float> residual(static_cast<size_t>(cols));
  for (int64_t row = 0; row < rows; ++row) {
    DecodeRow(codes, row, 0, cols, row_values.data());
    for (int64_t i = 0; i < cols; ++i) {
      uint32_t word;
      std::memcpy(&word, packed->bytes.data() + (row * words + i / 32) * 4, 4);
      residual[static_cast<size_t>(i)] = (word >> (i % 32) & 1u) != 0 ? 1.0f : -1.0f;
    }
    HadamardInverse(residual);
    const float factor = a * norms[static_cast<size_t>(row)];
    for (size_t i = 0; i < residual.size(); ++i) {
      row_values[i] = row_values[i] + factor * (signs[i] * residual[i]);
    }
    std::memcpy(out.data() + static_cast<size_t>(row * cols) * sizeof(float), row_values.data(),
                static_cast<size_t>(cols) * sizeof(float));
  }
  return Status::Ok();
}

}  // namespace tq

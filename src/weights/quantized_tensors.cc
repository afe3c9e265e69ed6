#include "weights/quantized_tensors.h"

#include <algorithm>
#include <cmath>

#include "codec/codec.h"
#include "codec/float8.h"
#include "codec/group_scales.h"

namespace tq {
namespace {

std::string Found(const SourceTensor& tensor) {
  return std::string(DTypeName(tensor.dtype)) + " " + ShapeString(tensor.shape);
}

Status Bad(const SourceTensor& tensor, const std::string& expected) {
  return Corrupt("tensor " + tensor.name + ": expected " + expected + ", found " + Found(tensor));
}

bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBf16;
}

bool IsPacked(DType type) {
  return type == DType::kU32 || type == DType::kI32 || type == DType::kU8;
}

bool IsOneOf(int64_t value, std::initializer_list<int64_t> allowed) {
  return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

// Consecutive elements that share one of `parts` scales: a power of two, or all of them. 0: no such
// block.
int64_t BlockSize(int64_t elements, int64_t parts) {
  if (parts == 1) return elements;
  for (int64_t block = 1; block < elements; block *= 2) {
    if ((elements + block - 1) / block == parts) return block;
  }
  return 0;
}

// The largest magnitude of a code, for the bound of a value.
float LargestCode(const Format& format) {
  if (format.codec == CodecId::kFp4) return 6.0f;
  if (format.codec == CodecId::kFp8) return 448.0f;
  return static_cast<float>((1 << format.bits) - 1);
}

bool IsNanScale(const StoredMatrix& matrix, int64_t index) {
  if (matrix.scale_type == DType::kE8M0) return matrix.scales[index] == std::byte{0xFF};
  return matrix.scale_type == DType::kF8E4M3 &&
         IsNanE4M3(static_cast<uint8_t>(matrix.scales[index]));
}

// Every code times every scale stays finite.
Status CheckScales(const StoredMatrix& matrix, const QuantizedParts& parts) {
  const float largest = LargestCode(matrix.format);
  const int64_t count = matrix.scale_rows() * matrix.scale_cols();
  for (int64_t i = 0; i < count; ++i) {
    const float scale = LoadScale(matrix.scales, matrix.scale_type, i) / matrix.global_scale;
    float bound = std::fabs(scale) * largest;
    if (matrix.biases != nullptr) {
      bound += std::fabs(LoadScale(matrix.biases, matrix.scale_type, i));
    }
    if (IsNanScale(matrix, i) || !std::isfinite(bound)) {
      return Corrupt("tensor " + parts.scales->name +
                     ": expected scales of finite weights, found NaN, infinity or too large at " +
                     std::to_string(i / matrix.scale_cols()) + ", " +
                     std::to_string(i % matrix.scale_cols()));
    }
  }
  return Status::Ok();
}

// Types without an own dtype in the file: bytes of e4m3 or e8m0.
Status SetGroupScales(const QuantizedParts& parts, DType type, MatrixTensors& out) {
  StoredMatrix& matrix = out.matrix;
  matrix.scale_type = type;
  if (parts.values == MatrixValues::kShapes) {
    matrix.scales = parts.scales->bytes.data();
    if (parts.biases != nullptr) matrix.biases = parts.biases->bytes.data();
    for (const SourceTensor* part : {parts.scales, parts.biases}) {
      if (part == nullptr || part->dense()) continue;
      out.copied_bytes += NumElements(part->shape) * static_cast<int64_t>(DTypeBytes(part->dtype));
    }
    return Status::Ok();
  }
  matrix.scales = DenseTensor(*parts.scales, out.scales).bytes.data();
  if (parts.biases != nullptr) {
    matrix.biases = DenseTensor(*parts.biases, out.biases).bytes.data();
  }
  return CheckScales(matrix, parts);
}

Status ReadGlobalScale(const SourceTensor& tensor, MatrixValues values, float& out) {
  if (tensor.dtype != DType::kF32 || NumElements(tensor.shape) != 1) {
    return Bad(tensor, "one F32 value");
  }
  if (values == MatrixValues::kShapes) {
    out = 2.0f;  // any but 1: that there is one says that it is wanted
    return Status::Ok();
  }
  out = LoadScale(tensor.bytes.data(), DType::kF32, 0);
  if (std::isfinite(out) && out > 0) return Status::Ok();
  return Corrupt("tensor " + tensor.name + ": expected a positive number, found " +
                 std::to_string(out));
}

Status ReadFp8(const QuantizedParts& parts, MatrixTensors& out) {
  StoredMatrix& matrix = out.matrix;
  const SourceTensor& weight = *parts.weight;
  const SourceTensor& scales = *parts.scales;
  if (weight.shape != Shape{matrix.rows, matrix.cols}) {
    return Bad(weight, "F8_E4M3 " + ShapeString({matrix.rows, matrix.cols}) + " from config.json");
  }
  const bool one = scales.shape.size() < 2 && NumElements(scales.shape) == 1;
  const int64_t scale_rows = one ? 1 : scales.shape.size() == 2 ? scales.shape[0] : 0;
  const int64_t scale_cols = one ? 1 : scales.shape.size() == 2 ? scales.shape[1] : 0;
  matrix.block_rows = BlockSize(matrix.rows, scale_rows);
  const int64_t group = BlockSize(matrix.cols, scale_cols);
  if (!IsFloat(scales.dtype) || matrix.block_rows == 0 || group == 0) {
    return Bad(scales, "F32 or BF16 scales of blocks of " + ShapeString(weight.shape) +
                           ", of its rows, or one");
  }
  matrix.format = {.codec = CodecId::kFp8, .bits = 8, .group = static_cast<int>(group)};
  if (parts.values == MatrixValues::kAll && !GetCodec(CodecId::kFp8).all_finite(weight.bytes)) {
    return Corrupt("tensor " + weight.name + ": expected finite weights, found NaN");
  }
  return SetGroupScales(parts, scales.dtype, out);
}

Status ReadAffine(const QuantizedParts& parts, int64_t bits, int64_t group, MatrixTensors& out) {
  const SourceTensor& scales = *parts.scales;
  // compressed-tensors centres its codes and needs no biases; its words are signed.
  const bool symmetric = parts.biases == nullptr && parts.weight->dtype == DType::kI32;
  if (!symmetric && (parts.biases == nullptr || parts.biases->shape != scales.shape ||
                     parts.biases->dtype != scales.dtype)) {
    if (parts.biases == nullptr) {
      return NotFound("tensor " + scales.name + ": expected biases beside it, found none");
    }
    return Bad(*parts.biases, Found(scales));
  }
  if (!IsOneOf(bits, {2, 3, 4, 5, 6, 8}) || !IsOneOf(group, {32, 64, 128})) {
    return Bad(scales, "2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128 of " +
                           std::to_string(out.matrix.cols) + " columns in " +
                           ShapeString(parts.weight->shape));
  }
  out.matrix.format = {
      .codec = CodecId::kAffine, .bits = static_cast<int>(bits), .group = static_cast<int>(group)};
  return SetGroupScales(parts, scales.dtype, out);
}

// mxfp4, nvfp4, mxfp8: told by width and group.
Status ReadMicroFloats(const QuantizedParts& parts, int64_t bits, int64_t group,
                       MatrixTensors& out) {
  const SourceTensor& scales = *parts.scales;
  const bool four = bits == 4 && (group == 16 || group == 32);
  if (!four && !(bits == 8 && group == 32)) {
    return Bad(scales, "mxfp4, nvfp4 or mxfp8 scales (groups of 32, 16 and 32) of " +
                           std::to_string(out.matrix.cols) + " columns in " +
                           ShapeString(parts.weight->shape));
  }
  const DType type = group == 16 ? DType::kF8E4M3 : DType::kE8M0;
  if ((scales.dtype != DType::kU8 && scales.dtype != type) || parts.biases != nullptr) {
    return Bad(scales, std::string(DTypeName(type)) + " or U8 scales without biases");
  }
  out.matrix.format = {.codec = bits == 4 ? CodecId::kFp4 : CodecId::kFp8,
                       .bits = static_cast<int>(bits),
                       .group = static_cast<int>(group)};
  if (bits == 8 && parts.values == MatrixValues::kAll &&
      !GetCodec(CodecId::kFp8).all_finite(parts.weight->bytes)) {
    return Corrupt("tensor " + parts.weight->name + ": expected finite weights, found NaN");
  }
  return SetGroupScales(parts, type, out);
}

}  // namespace

Status ReadQuantized(const QuantizedParts& parts, int64_t rows, int64_t cols, MatrixTensors& out) {
  const SourceTensor& weight = *parts.weight;
  const SourceTensor& scales = *parts.scales;
  StoredMatrix& matrix = out.matrix;
  matrix.rows = rows;
  matrix.cols = cols;
  if (weight.value_pitch != 0 || weight.bytes.empty() || scales.bytes.empty()) {
    return Bad(weight, "codes beside " + scales.name);
  }
  if (parts.global_scale != nullptr) {
    TQ_RETURN_IF_ERROR(ReadGlobalScale(*parts.global_scale, parts.values, matrix.global_scale));
  }
  const bool fp8 = weight.dtype == DType::kF8E4M3;
  if (!fp8 && !IsPacked(weight.dtype)) {
    return Unsupported("tensor " + weight.name +
                       ": expected U32, I32, U8 or F8_E4M3 codes beside " + scales.name +
                       ", found " + Found(weight));
  }
  if (weight.shape.size() != 2 || weight.shape[0] != rows) {
    return Bad(weight, std::to_string(rows) + " rows of codes from config.json");
  }
  const int64_t dense_row = weight.shape[1] * static_cast<int64_t>(DTypeBytes(weight.dtype));
  matrix.data = weight.bytes.data();
  matrix.row_bytes = weight.row_pitch != 0 ? weight.row_pitch : dense_row;
  if (fp8) return ReadFp8(parts, out);

  const int64_t bits = dense_row * 8 / cols;
  const int64_t groups = scales.shape.size() == 2 ? scales.shape[1] : 0;
  if (dense_row * 8 != bits * cols) {
    return Bad(weight, "whole codes of " + std::to_string(cols) + " columns");
  }
  if (groups < 1 || scales.shape[0] != rows || cols % groups != 0) {
    return Bad(scales, "[" + std::to_string(rows) + ", " + std::to_string(cols) + " / group]");
  }
  if (IsFloat(scales.dtype)) return ReadAffine(parts, bits, cols / groups, out);
  return ReadMicroFloats(parts, bits, cols / groups, out);
}

}  // namespace tq

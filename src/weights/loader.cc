#include "weights/loader.h"

#include <algorithm>
#include <cstring>

#include "backend/matrix_check.h"
#include "codec/codec.h"
#include "tensor/half.h"
#include "weights/ignorable.h"

namespace tq {
namespace {

constexpr std::string_view kWeight = ".weight";

// What a matrix and its scales have in common of their names. Requires: name ends in ".weight".
std::string MatrixPath(const std::string& name) {
  return name.substr(0, name.size() - kWeight.size());
}

}  // namespace

WeightLoader::WeightLoader(const WeightSource& source, Backend& backend, bool config_rotates,
                           std::function<void(int64_t, int64_t)> progress, MatrixValues values)
    : source_(source),
      backend_(backend),
      config_rotates_(config_rotates),
      values_(values),
      progress_(std::move(progress)) {
  for (const SourceTensor& tensor : source.tensors())
    total_bytes_ += static_cast<int64_t>(tensor.bytes.size());
}

void WeightLoader::Expect(const std::vector<TensorNeed>& needs) {
  std::vector<std::span<const std::byte>> ranges;
  for (const TensorNeed& need : needs) {
    if (need.mapped) continue;
    if (!need.name.ends_with(kWeight)) {
      const SourceTensor* tensor = source_.Find(need.name);
      if (tensor != nullptr) ranges.push_back(tensor->bytes);
      continue;
    }
    for (const SourceTensor* part : MatrixPartsOf(source_, MatrixPath(need.name))) {
      ranges.push_back(part->bytes);
    }
  }
  read_ahead_ = std::make_unique<ReadAhead>(std::move(ranges));
}

void WeightLoader::Use(const SourceTensor& tensor) {
  used_.insert(tensor.name);
  if (read_ahead_ != nullptr) read_ahead_->Used(tensor.bytes.size());
  done_bytes_ += static_cast<int64_t>(tensor.bytes.size());
  if (progress_) progress_(done_bytes_, total_bytes_);
}

Result<MatrixTensors> WeightLoader::Read(const std::string& name, int64_t rows, int64_t cols) {
  if (!name.ends_with(kWeight)) return NotFound("tensor " + name + ": expected a name in .weight");
  return ReadMatrix(source_, MatrixPath(name), rows, cols, config_rotates_, values_);
}

// passing: bytes that are in use while this is prepared.
void WeightLoader::Count(int64_t prepared, int64_t floats, int64_t passing) {
  prepared_bytes_ += prepared;
  float_bytes_ += floats;
  peak_bytes_ = std::max(peak_bytes_, prepared_bytes_ + float_bytes_ + passing);
}

void WeightLoader::UseAll(const MatrixTensors& tensors) {
  for (const SourceTensor* part : tensors.parts) {
    Use(*part);
    if (reads()) source_.DropPages(*part);
  }
}

Result<std::unique_ptr<Weight>> WeightLoader::Matrix(const std::string& name, int64_t rows,
                                                     int64_t cols, TensorRole) {
  TQ_ASSIGN_OR_RETURN(const MatrixTensors tensors, Read(name, rows, cols));
  auto weight = backend_.Prepare(tensors.matrix);
  if (!weight.ok()) return weight.status().WithContext("tensor " + name);
  int64_t stored = tensors.copied_bytes;
  for (const SourceTensor* part : tensors.parts) stored += static_cast<int64_t>(part->bytes.size());
  Count((*weight)->bytes(), 0, stored);
  UseAll(tensors);
  return weight;
}

Result<std::unique_ptr<RowTable>> WeightLoader::Rows(const std::string& name, int64_t rows,
                                                     int64_t cols) {
  TQ_ASSIGN_OR_RETURN(MatrixTensors tensors, Read(name, rows, cols));
  if (reads()) {
    TQ_RETURN_IF_ERROR(CheckStoredMatrix(tensors.matrix).WithContext("tensor " + name));
  }
  UseAll(tensors);
  return std::make_unique<RowTable>(std::move(tensors), source_.Mapping());
}

Result<std::vector<std::unique_ptr<Weight>>> WeightLoader::MatrixParts(
    const std::string& name, int64_t rows, int64_t cols, const std::vector<MatrixPart>& parts) {
  if (!reads()) return SizedParts(name, rows, cols, parts);
  TQ_ASSIGN_OR_RETURN(const std::vector<float> values,
                      Floats(name, {rows, cols}, TensorRole::kLinear));
  std::vector<std::unique_ptr<Weight>> out;
  std::vector<uint16_t> bf16;
  std::vector<float> f32;
  for (const MatrixPart& part : parts) {
    // Row-major copy of the part; bf16 keeps what bf16 checkpoints hold exactly.
    f32.resize(static_cast<size_t>(part.num_rows * cols));
    for (int64_t r = 0; r < part.num_rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        f32[static_cast<size_t>(part.transposed ? c * part.num_rows + r : r * cols + c)] =
            values[static_cast<size_t>((part.row_begin + r) * cols + c)];
      }
    }
    bf16.resize(f32.size());
    bool exact = true;
    for (size_t i = 0; i < f32.size(); ++i) {
      bf16[i] = F32ToBf16(f32[i]);
      exact = exact && Bf16ToF32(bf16[i]) == f32[i];
    }
    StoredMatrix matrix;
    matrix.format = {.codec = exact ? CodecId::kBf16 : CodecId::kF32, .bits = exact ? 16 : 32};
    matrix.rows = part.transposed ? cols : part.num_rows;
    matrix.cols = part.transposed ? part.num_rows : cols;
    matrix.data = exact ? reinterpret_cast<const std::byte*>(bf16.data())
                        : reinterpret_cast<const std::byte*>(f32.data());
    matrix.row_bytes = matrix.cols * (exact ? 2 : 4);
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<Weight> weight, backend_.Prepare(matrix));
    out.push_back(std::move(weight));
  }
  return out;
}

// bf16 stays bf16; of other formats some value will not fit.
Result<std::vector<std::unique_ptr<Weight>>> WeightLoader::SizedParts(
    const std::string& name, int64_t rows, int64_t cols, const std::vector<MatrixPart>& parts) {
  TQ_ASSIGN_OR_RETURN(const MatrixTensors tensors, Read(name, rows, cols));
  UseAll(tensors);
  const bool exact = tensors.matrix.format.codec == CodecId::kBf16;
  std::vector<std::unique_ptr<Weight>> out;
  for (const MatrixPart& part : parts) {
    StoredMatrix matrix;
    matrix.format = {.codec = exact ? CodecId::kBf16 : CodecId::kF32, .bits = exact ? 16 : 32};
    matrix.rows = part.transposed ? cols : part.num_rows;
    matrix.cols = part.transposed ? part.num_rows : cols;
    matrix.data = tensors.matrix.data;
    matrix.row_bytes = matrix.cols * (exact ? 2 : 4);
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<Weight> weight, backend_.Prepare(matrix));
    Count(weight->bytes(), 0, rows * cols * static_cast<int64_t>(sizeof(float)));
    out.push_back(std::move(weight));
  }
  return out;
}

Result<std::vector<float>> WeightLoader::Floats(const std::string& name, const Shape& shape,
                                                TensorRole) {
  // A matrix may be stored in any format.
  if (shape.size() == 2 && name.ends_with(".weight")) {
    TQ_ASSIGN_OR_RETURN(const MatrixTensors tensors, Read(name, shape[0], shape[1]));
    UseAll(tensors);
    Count(0, NumElements(shape) * static_cast<int64_t>(sizeof(float)), 0);
    if (!reads()) return std::vector<float>(static_cast<size_t>(NumElements(shape)));
    return MatrixFloats(tensors.matrix);
  }
  const SourceTensor* tensor = source_.Find(name);
  if (tensor == nullptr) return NotFound("tensor " + name + " is missing from " + source_.path());
  if (tensor->shape != shape) {
    return Corrupt("tensor " + name + ": expected " + ShapeString(shape) +
                   " from config.json, found " + ShapeString(tensor->shape));
  }
  Count(0, NumElements(shape) * static_cast<int64_t>(sizeof(float)), 0);
  if (!reads()) {
    Use(*tensor);
    return std::vector<float>(static_cast<size_t>(NumElements(shape)));
  }
  TQ_ASSIGN_OR_RETURN(std::vector<float> values, ReadFloats(*tensor));
  TQ_RETURN_IF_ERROR(CheckFinite(*tensor));
  Use(*tensor);
  source_.DropPages(*tensor);
  return values;
}

Result<std::vector<float>> WeightLoader::FirstFloats(const std::string& name, int64_t n) {
  const SourceTensor* tensor = source_.Find(name);
  if (tensor == nullptr) return NotFound("tensor " + name + " is missing from " + source_.path());
  if (NumElements(tensor->shape) < n) {
    return Corrupt("tensor " + name + ": expected at least " + std::to_string(n) +
                   " values, found " + ShapeString(tensor->shape));
  }
  TQ_ASSIGN_OR_RETURN(std::vector<float> values, Floats(name, tensor->shape, TensorRole::kSmall));
  values.resize(static_cast<size_t>(n));
  return values;
}

Result<std::vector<int64_t>> WeightLoader::Integers(const std::string& name, int64_t n) {
  const SourceTensor* tensor = source_.Find(name);
  if (tensor == nullptr) return NotFound("tensor " + name + " is missing from " + source_.path());
  if (tensor->dtype != DType::kI64 || tensor->shape != Shape{n}) {
    return Corrupt("tensor " + name + ": expected I64 " + ShapeString({n}) + ", found " +
                   std::string(DTypeName(tensor->dtype)) + " " + ShapeString(tensor->shape));
  }
  std::vector<int64_t> values(static_cast<size_t>(n), 1);
  if (reads()) std::memcpy(values.data(), tensor->bytes.data(), values.size() * sizeof(int64_t));
  Use(*tensor);
  return values;
}

Status WeightLoader::CheckAllUsed(bool tied) const {
  std::string names;
  int count = 0;
  for (const SourceTensor& tensor : source_.tensors()) {
    if (used_.contains(tensor.name) || IsIgnorableTensor(source_, tensor.name)) continue;
    if (tied && tensor.name.starts_with("lm_head.")) continue;
    if (++count <= 3) names += (names.empty() ? "" : ", ") + tensor.name;
  }
  if (count == 0) return Status::Ok();
  return Corrupt(source_.path() + ": expected only tensors that config.json calls for, found " +
                 std::to_string(count) + " more: " + names + (count > 3 ? ", ..." : "") +
                 ": config.json and weights do not belong together");
}

}  // namespace tq

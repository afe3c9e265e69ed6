#include "weights/turbo_quant_tensors.h"

#include <algorithm>
#include <cmath>

#include "codec/turbo_quant.h"

namespace tq {
namespace {

Result<const SourceTensor*> Part(const WeightSource& source, const std::string& name, DType dtype,
                                 const Shape& shape) {
  const SourceTensor* tensor = source.Find(name);
  if (tensor == nullptr) return NotFound("tensor " + name + " is missing");
  if (tensor->dtype != dtype || tensor->shape != shape) {
    return Corrupt("tensor " + name + ": expected " + std::string(DTypeName(dtype)) + " " +
                   ShapeString(shape) + ", found " + std::string(DTypeName(tensor->dtype)) + " " +
                   ShapeString(tensor->shape));
  }
  return tensor;
}

Status CheckCodebook(const std::string& name, const std::vector<float>& codebook) {
  const size_t n = codebook.size();
  if (n != 2 && n != 3 && n != 4 && n != 8 && n != 16) {
    return Corrupt("tensor " + name + ": expected 2, 3, 4, 8 or 16 entries, found " +
                   std::to_string(n));
  }
  for (const float entry : codebook) {
    if (!std::isfinite(entry))
      return Corrupt("tensor " + name + ": found an entry that is NaN or infinite");
  }
  return Status::Ok();
}

}  // namespace

bool IsTurboQuant(const WeightSource& source, const std::string& path) {
  return source.Find(path + ".codebook") != nullptr;
}

Result<TurboQuantTensors> ReadTurboQuant(const WeightSource& source, const std::string& path,
                                         int64_t rows, int64_t cols, bool config_rotates,
                                         MatrixValues values) {
  const bool shapes = values == MatrixValues::kShapes;
  TurboQuantTensors out;
  const SourceTensor* codebook = source.Find(path + ".codebook");
  if (codebook == nullptr) return NotFound("tensor " + path + ".codebook is missing");
  if (codebook->dtype != DType::kF16 || codebook->shape.size() != 1) {
    return Corrupt("tensor " + codebook->name + ": expected F16 [entries], found " +
                   std::string(DTypeName(codebook->dtype)) + " " + ShapeString(codebook->shape));
  }
  if (shapes && codebook->shape[0] <= 16) {
    out.codebook.assign(static_cast<size_t>(codebook->shape[0]), 0.0f);
  } else {
    TQ_ASSIGN_OR_RETURN(out.codebook, ReadFloats(*codebook));
  }
  TQ_RETURN_IF_ERROR(CheckCodebook(codebook->name, out.codebook));
  const int entries = static_cast<int>(out.codebook.size());

  const SourceTensor* scales = source.Find(path + ".scales");
  if (scales == nullptr) return NotFound("tensor " + path + ".scales is missing");
  const int64_t groups = scales->shape.size() == 2 ? scales->shape[1] : 0;
  if (scales->dtype != DType::kF16 || groups < 1 || scales->shape[0] != rows ||
      cols % groups != 0) {
    return Corrupt("tensor " + scales->name + ": expected F16 [" + std::to_string(rows) + ", " +
                   std::to_string(cols) + " / group], found " +
                   std::string(DTypeName(scales->dtype)) + " " + ShapeString(scales->shape));
  }
  if (!shapes) TQ_RETURN_IF_ERROR(CheckFinite(*scales));
  const int64_t group = cols / groups;
  if (group != 16 && group != 32 && group != 64 && group != 128) {
    return Unsupported("tensor " + scales->name +
                       ": expected a group of 16, 32, 64 or 128 columns, found " +
                       std::to_string(group));
  }
  TQ_ASSIGN_OR_RETURN(const SourceTensor* words, Part(source, path + ".weight", DType::kU32,
                                                      {rows, TurboQuantWords(entries, cols)}));
  TQ_ASSIGN_OR_RETURN(const SourceTensor* signs,
                      Part(source, path + ".signs", DType::kF16, {cols}));
  if (shapes) {
    out.signs.assign(static_cast<size_t>(cols), 1.0f);
  } else {
    TQ_ASSIGN_OR_RETURN(out.signs, ReadFloats(*signs));
  }
  bool negative = false;
  for (const float sign : out.signs) {
    if (sign != 1.0f && sign != -1.0f) {
      return Corrupt("tensor " + signs->name + ": expected +1 or -1, found " +
                     std::to_string(sign));
    }
    negative = negative || sign < 0;
  }
  StoredMatrix& matrix = out.matrix;
  matrix.format = {
      .codec = CodecId::kTurboQuant,
      .bits = entries == 3 ? 2 : static_cast<int>(std::lround(std::log2(entries))),
      .group = static_cast<int>(group),
      .transform = config_rotates || negative ? Transform::kHadamard : Transform::kNone};
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.data = words->bytes.data();
  matrix.row_bytes = TurboQuantWords(entries, cols) * 4;
  matrix.scales = scales->bytes.data();
  matrix.codebook = out.codebook;
  matrix.signs = out.signs;
  return out;
}

}  // namespace tq

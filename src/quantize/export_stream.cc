#include "quantize/export_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "tensor/half.h"
#include "weights/matrix_tensors.h"

namespace tq {
namespace {

constexpr int64_t kPieceWeights = int64_t{1} << 22;
constexpr int64_t kQ8Values = 32;
constexpr int64_t kQ8Bytes = 34;

int64_t RowBytes(ExportType type, int64_t cols) {
  switch (type) {
    case ExportType::kF32:
      return cols * 4;
    case ExportType::kF16:
    case ExportType::kBf16:
      return cols * 2;
    case ExportType::kQ8_0:
      return cols / kQ8Values * kQ8Bytes;
    case ExportType::kI64:
      return cols * 8;
  }
  return 0;
}

bool IsFiniteHalf(uint16_t bits) { return (bits & 0x7C00u) != 0x7C00u; }

// Whether all values are finite and fit.
bool RoundF16(std::span<const float> row, std::byte* out) {
  bool good = true;
  for (size_t i = 0; i < row.size(); ++i) {
    const uint16_t bits = F32ToF16(row[i]);
    good = good && IsFiniteHalf(bits);
    std::memcpy(out + i * 2, &bits, 2);
  }
  return good;
}

bool RoundBf16(std::span<const float> row, std::byte* out) {
  bool good = true;
  for (size_t i = 0; i < row.size(); ++i) {
    const uint16_t bits = F32ToBf16(row[i]);
    good = good && (bits & 0x7F80u) != 0x7F80u;
    std::memcpy(out + i * 2, &bits, 2);
  }
  return good;
}

bool CopyF32(std::span<const float> row, std::byte* out) {
  std::memcpy(out, row.data(), row.size_bytes());
  return std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
}

// Blocks of an f16 scale, the largest magnitude / 127, and 32 codes rounded half away from zero.
bool RoundQ8(std::span<const float> row, std::byte* out) {
  for (size_t first = 0; first < row.size(); first += kQ8Values, out += kQ8Bytes) {
    const std::span<const float> block = row.subspan(first, kQ8Values);
    float largest = 0.0f;
    for (const float x : block) {
      if (!std::isfinite(x)) return false;
      largest = std::max(largest, std::fabs(x));
    }
    const float scale = largest / 127.0f;
    constexpr float kTiny = 1e-30f;  // far below the smallest f16: the block is zeros
    const float inverse = scale > kTiny ? 1.0f / scale : 0.0f;
    const uint16_t bits = F32ToF16(scale);
    if (!IsFiniteHalf(bits)) return false;
    std::memcpy(out, &bits, 2);
    for (size_t i = 0; i < block.size(); ++i) {
      out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(block[i] * inverse)));
    }
  }
  return true;
}

bool Encode(ExportType type, std::span<const float> row, std::byte* out) {
  switch (type) {
    case ExportType::kF16:
      return RoundF16(row, out);
    case ExportType::kBf16:
      return RoundBf16(row, out);
    case ExportType::kQ8_0:
      return RoundQ8(row, out);
    default:
      return CopyF32(row, out);
  }
}

const char* Limit(ExportType type) {
  if (type == ExportType::kF16) return "finite weights below 65504 (choose bfloat16 or q8_0)";
  return "finite weights";
}

// The row of Hugging Face's order that is stored at `row`.
int64_t HeadRow(int64_t row, int64_t head_dim) {
  const int64_t in_head = row % head_dim;
  return row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
}

}  // namespace

int64_t ExportItem::cols() const { return shape.empty() ? 1 : shape.back(); }

int64_t ExportItem::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

int64_t ExportItem::output_bytes() const { return rows() * RowBytes(type, cols()); }

// Where the values of an item come from: a matrix in any format, or floats in memory.
struct ExportStream::Rows {
  MatrixTensors tensors;
  std::vector<float> floats;
  bool in_memory = false;
  int64_t cols = 0;

  void Read(int64_t row, std::span<float> out) const {
    if (in_memory) {
      std::copy_n(floats.begin() + row * cols, cols, out.begin());
      return;
    }
    const StoredMatrix& matrix = tensors.matrix;
    DecodeRow(matrix, row, 0, cols, out.data());
    if (matrix.format.transform != Transform::kHadamard) return;
    HadamardInverse(out);
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] * matrix.signs[i];
  }
};

Result<ExportStream::Rows> ExportStream::OpenLatent(const LatentHeads& latent) const {
  Rows rows;
  rows.in_memory = true;
  rows.cols = latent.rank;
  const int64_t per_head = latent.nope + latent.values;
  rows.floats.resize(static_cast<size_t>(latent.heads * per_head * latent.rank));
  for (int64_t head = 0; head < latent.heads; ++head) {
    const std::string number = std::to_string(head);
    float* out = rows.floats.data() + head * per_head * latent.rank;
    TQ_ASSIGN_OR_RETURN(const MatrixTensors query,
                        ReadMatrix(source_, latent.prefix + "embed_q." + number, latent.rank,
                                   latent.nope, config_rotates_));
    const std::vector<float> transposed = MatrixFloats(query.matrix);
    for (int64_t r = 0; r < latent.rank; ++r) {
      for (int64_t c = 0; c < latent.nope; ++c) {
        out[c * latent.rank + r] = transposed[static_cast<size_t>(r * latent.nope + c)];
      }
    }
    TQ_ASSIGN_OR_RETURN(const MatrixTensors value,
                        ReadMatrix(source_, latent.prefix + "unembed_out." + number, latent.values,
                                   latent.rank, config_rotates_));
    const std::vector<float> values = MatrixFloats(value.matrix);
    std::copy(values.begin(), values.end(), out + latent.nope * latent.rank);
  }
  return rows;
}

Result<ExportStream::Rows> ExportStream::Open(const ExportItem& item) const {
  constexpr std::string_view kWeight = ".weight";
  if (item.latent.heads > 0) return OpenLatent(item.latent);
  Rows rows;
  // The values of a vector count as rows where rows move.
  rows.cols = item.change == ExportChange::kHeadRows && item.shape.size() == 1 ? 1 : item.cols();
  if (!item.values.empty()) {
    rows.floats = item.values;
    rows.in_memory = true;
    return rows;
  }
  const TensorNeed& need = item.need;
  if (need.shape.size() == 2 && need.name.ends_with(kWeight)) {
    const std::string path = need.name.substr(0, need.name.size() - kWeight.size());
    TQ_ASSIGN_OR_RETURN(rows.tensors,
                        ReadMatrix(source_, path, need.shape[0], need.shape[1], config_rotates_));
    rows.cols = need.shape[1];
    return rows;
  }
  const SourceTensor* tensor = source_.Find(need.name);
  if (tensor == nullptr) {
    return NotFound("tensor " + need.name + " is missing from " + source_.path());
  }
  if (tensor->shape != need.shape) {
    return Corrupt("tensor " + need.name + ": expected " + ShapeString(need.shape) +
                   " from config.json, found " + ShapeString(tensor->shape));
  }
  TQ_ASSIGN_OR_RETURN(rows.floats, ReadFloats(*tensor));
  rows.in_memory = true;
  return rows;
}

Status ExportStream::WriteIntegers(const ExportItem& item, const Append& append) {
  const SourceTensor* tensor = source_.Find(item.need.name);
  if (tensor == nullptr) {
    return NotFound("tensor " + item.need.name + " is missing from " + source_.path());
  }
  if (tensor->dtype != DType::kI64 || !tensor->dense() ||
      static_cast<int64_t>(tensor->bytes.size()) != item.output_bytes()) {
    return Corrupt("tensor " + item.need.name + ": expected I64 " + ShapeString(item.shape) +
                   ", found " + std::string(DTypeName(tensor->dtype)) + " " +
                   ShapeString(tensor->shape));
  }
  TQ_RETURN_IF_ERROR(append(tensor->bytes));
  return Advance(item.weights());
}

Status ExportStream::Write(const ExportItem& item, const Append& append) {
  if (item.weights() == 0) return Status::Ok();
  if (item.type == ExportType::kI64) return WriteIntegers(item, append);
  TQ_ASSIGN_OR_RETURN(const Rows rows, Open(item));
  // A convolution's [channels, 1, taps] has the rows of [channels, taps].
  const int64_t cols = rows.cols;
  const int64_t num_rows = item.weights() / cols;
  const int64_t row_bytes = RowBytes(item.type, cols);
  const int64_t step = std::max<int64_t>(1, kPieceWeights / cols);
  rows_.resize(static_cast<size_t>(pool_.num_threads()));
  for (int64_t first = 0; first < num_rows; first += step) {
    const int64_t count = std::min(step, num_rows - first);
    piece_.resize(static_cast<size_t>(count * row_bytes));
    std::atomic<int64_t> bad_row{-1};
    pool_.ParallelFor(count, 1, [&](int64_t begin, int64_t end, int thread) {
      std::vector<float>& row = rows_[static_cast<size_t>(thread)];
      row.resize(static_cast<size_t>(cols));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = first + i;
        rows.Read(item.change == ExportChange::kHeadRows ? HeadRow(at, item.head_dim) : at, row);
        if (item.change == ExportChange::kPlusOne) {
          for (float& x : row) x += 1.0f;
        } else if (item.change == ExportChange::kMinusOne) {
          for (float& x : row) x -= 1.0f;
        }
        if (!Encode(item.type, row, piece_.data() + i * row_bytes)) bad_row = at;
      }
    });
    if (bad_row >= 0) {
      return Corrupt(
          fmt::format("tensor {}, row {}: expected {}, found NaN, infinity or a larger one",
                      item.need.name, bad_row.load(), Limit(item.type)));
    }
    TQ_RETURN_IF_ERROR(append(piece_));
    TQ_RETURN_IF_ERROR(Advance(count * cols));
  }
  for (const SourceTensor* part : rows.tensors.parts) source_.DropPages(*part);
  return Status::Ok();
}

Status ExportStream::Advance(int64_t weights) {
  done_ += weights;
  if (options_.progress) options_.progress(done_, total_);
  if (options_.cancel != nullptr && options_.cancel->load()) {
    return Cancelled("export stopped: nothing was written");
  }
  return Status::Ok();
}

}  // namespace tq

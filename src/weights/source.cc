#include "weights/source.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "codec/codec.h"

namespace tq {

// The functions of the list, each defined in its container's file.
#define SOURCE(suffix, Open) Result<std::unique_ptr<WeightSource>> Open(const std::string& path);
#include "weights/source_list.inc"
#undef SOURCE

namespace {

struct Container {
  std::string_view suffix;
  Result<std::unique_ptr<WeightSource>> (*open)(const std::string& path);
};

constexpr Container kContainers[] = {
#define SOURCE(suffix, Open) {suffix, Open},
#include "weights/source_list.inc"
#undef SOURCE
};

}  // namespace

const SourceTensor* WeightSource::Find(std::string_view name) const {
  const std::vector<SourceTensor>& all = tensors();
  const auto it =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const SourceTensor& t, std::string_view n) { return t.name < n; });
  return it != all.end() && it->name == name ? &*it : nullptr;
}

Result<std::unique_ptr<WeightSource>> OpenSource(const std::string& path) {
  const bool is_directory = IsDirectory(path);
  if (!is_directory && !FileExists(path)) {
    return NotFound(path + ": no such folder or file");
  }
  std::string known;
  for (const Container& container : kContainers) {
    if (container.suffix.empty() == is_directory && path.ends_with(container.suffix)) {
      return container.open(path);
    }
    if (!container.suffix.empty()) known += ", a " + std::string(container.suffix) + " file";
  }
  return Unsupported(path + ": expected a model folder" + known);
}

StoredMatrix MatrixView(const SourceTensor& tensor) {
  TQ_CHECK(tensor.is_float_like);
  const CodecInfo& codec = GetCodec(tensor.codec);
  TQ_CHECK(codec.block_bytes > 0);
  StoredMatrix matrix;
  matrix.format.codec = tensor.codec;
  if (codec.block_values == 1) {
    matrix.format.bits = codec.block_bytes * 8;
  } else {
    // A block holds its codes and at least one byte of scale.
    matrix.format.bits = (codec.block_bytes * 8 - 8) / codec.block_values;
    matrix.format.group = codec.block_values;
  }
  matrix.rows = 1;
  matrix.cols = tensor.shape.empty() ? 1 : tensor.shape.back();
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) matrix.rows *= tensor.shape[i];
  matrix.data = tensor.bytes.data();
  TQ_CHECK(tensor.value_pitch == 0);
  matrix.row_bytes = tensor.row_pitch != 0 ? tensor.row_pitch
                                           : matrix.cols / codec.block_values * codec.block_bytes;
  return matrix;
}

SourceTensor DenseTensor(const SourceTensor& tensor, std::vector<std::byte>& storage) {
  if (tensor.dense()) return tensor;
  constexpr int64_t kTile = 64;  // keeps both sides of a transposition in cache
  const auto value = static_cast<int64_t>(DTypeBytes(tensor.dtype));
  const int64_t cols = tensor.shape.back();
  const int64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  const int64_t value_pitch = tensor.value_pitch != 0 ? tensor.value_pitch : value;
  storage.resize(static_cast<size_t>(rows * cols * value));
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (int64_t c0 = 0; c0 < cols; c0 += kTile) {
      for (int64_t r = r0; r < std::min(rows, r0 + kTile); ++r) {
        const int64_t end = std::min(cols, c0 + kTile);
        const std::byte* in = tensor.bytes.data() + r * tensor.row_pitch;
        std::byte* out = storage.data() + r * cols * value;
        if (value_pitch == value) {
          std::memcpy(out + c0 * value, in + c0 * value, static_cast<size_t>((end - c0) * value));
          continue;
        }
        for (int64_t c = c0; c < end; ++c) {
          std::memcpy(out + c * value, in + c * value_pitch, static_cast<size_t>(value));
        }
      }
    }
  }
  SourceTensor out = tensor;
  out.bytes = storage;
  out.row_pitch = 0;
  out.value_pitch = 0;
  return out;
}

CheckpointFacts WeightSource::facts() const {
  return {.has_lm_head = Find("lm_head.weight") != nullptr, .norms_include_one = false};
}

Status CheckFinite(const SourceTensor& tensor) {
  TQ_CHECK(tensor.is_float_like);
  if (GetCodec(tensor.codec).all_finite(tensor.bytes)) return Status::Ok();
  return Corrupt("tensor " + tensor.name + ": expected finite weights, found NaN or infinity");
}

Result<std::vector<float>> ReadFloats(const SourceTensor& tensor) {
  if (!tensor.is_float_like) {
    return Unsupported("tensor \"" + tensor.name + "\": expected floating-point values, found " +
                       std::string(DTypeName(tensor.dtype)));
  }
  std::vector<std::byte> storage;
  const StoredMatrix matrix = MatrixView(DenseTensor(tensor, storage));
  std::vector<float> out(static_cast<size_t>(NumElements(tensor.shape)));
  if (out.empty()) return out;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    DecodeRow(matrix, row, 0, matrix.cols, out.data() + row * matrix.cols);
  }
  return out;
}

}  // namespace tq

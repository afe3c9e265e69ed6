#include "weights/source.h"

#include <algorithm>

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
  matrix.row_bytes = matrix.cols / codec.block_values * codec.block_bytes;
  return matrix;
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
  const StoredMatrix matrix = MatrixView(tensor);
  std::vector<float> out(static_cast<size_t>(NumElements(tensor.shape)));
  if (out.empty()) return out;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    DecodeRow(matrix, row, 0, matrix.cols, out.data() + row * matrix.cols);
  }
  return out;
}

}  // namespace tq

#include "weights/naming/slices.h"

#include "base/check.h"

namespace tq {
namespace {

// Bytes from one row (of a vector: value) to the next.
int64_t RowPitch(const SourceTensor& tensor) {
  const int64_t pitch = tensor.shape.size() == 1 ? tensor.value_pitch : tensor.row_pitch;
  if (pitch != 0) return pitch;
  return static_cast<int64_t>(tensor.bytes.size()) / tensor.shape[0];
}

}  // namespace

SourceTensor StackItem(const SourceTensor& stack, int64_t index) {
  TQ_CHECK(stack.dense() && !stack.shape.empty() && stack.shape[0] > index);
  SourceTensor out = stack;
  const size_t item_bytes = stack.bytes.size() / static_cast<size_t>(stack.shape[0]);
  out.bytes = stack.bytes.subspan(static_cast<size_t>(index) * item_bytes, item_bytes);
  out.shape.erase(out.shape.begin());
  while (out.shape.size() > 2) {
    const int64_t last = out.shape.back();
    out.shape.pop_back();
    out.shape.back() *= last;
  }
  return out;
}

SourceTensor RowRange(const SourceTensor& tensor, int64_t begin, int64_t count) {
  TQ_CHECK(tensor.dense() && begin >= 0 && begin + count <= tensor.shape[0]);
  SourceTensor out = tensor;
  const int64_t pitch = RowPitch(tensor);
  out.shape[0] = count;
  out.bytes =
      tensor.bytes.subspan(static_cast<size_t>(begin * pitch), static_cast<size_t>(count * pitch));
  return out;
}

SourceTensor Transposed(const SourceTensor& tensor) {
  TQ_CHECK(tensor.dense() && tensor.shape.size() == 2);
  SourceTensor out = tensor;
  const int64_t value = static_cast<int64_t>(DTypeBytes(tensor.dtype));
  out.row_pitch = value;
  out.value_pitch = value * tensor.shape[1];
  std::swap(out.shape[0], out.shape[1]);
  return out;
}

SourceTensor EverySecondRow(const SourceTensor& tensor, int64_t first) {
  TQ_CHECK(!tensor.shape.empty() && tensor.shape[0] % 2 == 0 && tensor.shape[0] > 0);
  SourceTensor out = tensor;
  const int64_t pitch = RowPitch(tensor);
  const int64_t unused_rows = first == 0 ? 1 : 0;  // after the last row of this half
  (tensor.shape.size() == 1 ? out.value_pitch : out.row_pitch) = 2 * pitch;
  out.shape[0] /= 2;
  const int64_t begin = first * pitch;
  const int64_t end = static_cast<int64_t>(tensor.bytes.size()) - unused_rows * pitch;
  out.bytes = tensor.bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  return out;
}

}  // namespace tq

#include "weights/row_table.h"

#include "codec/codec.h"
#include "codec/hadamard.h"

namespace tq {

RowTable::RowTable(MatrixTensors tensors, std::shared_ptr<const void> mapping)
    : tensors_(std::move(tensors)), mapping_(std::move(mapping)) {
  for (const SourceTensor* part : tensors_.parts) {
    mapped_bytes_ += static_cast<int64_t>(part->bytes.size());
  }
  tensors_.parts.clear();  // the mapping does not keep the source's list of tensors
}

void RowTable::Read(int64_t row, float* out) const {
  const StoredMatrix& matrix = tensors_.matrix;
  DecodeRow(matrix, row, 0, matrix.cols, out);
  if (matrix.format.transform != Transform::kHadamard) return;
  const auto n = static_cast<size_t>(matrix.cols);
  HadamardInverse({out, n});
  for (size_t i = 0; i < n; ++i) out[i] = out[i] * matrix.signs[i];
}

}  // namespace tq

// RowTable: a matrix whose rows are read out of the mapped checkpoint when they are wanted: tables
// far too large to prepare, of which a token needs a few rows. Takes no memory of its own beyond
// what the system keeps of the file; any thread.
#pragma once

#include <memory>

#include "weights/matrix_tensors.h"

namespace tq {

class RowTable {
 public:
  // mapping keeps what `tensors` points to alive; null: the source outlives the table.
  RowTable(MatrixTensors tensors, std::shared_ptr<const void> mapping);

  // out[cols] = the row in f32, a rotation undone: the bits of the Embed op. Values are as stored:
  // nobody has looked for NaN in them.
  void Read(int64_t row, float* out) const;
  // In the checkpoint's files.
  int64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  MatrixTensors tensors_;
  std::shared_ptr<const void> mapping_;
  int64_t mapped_bytes_ = 0;
};

}  // namespace tq

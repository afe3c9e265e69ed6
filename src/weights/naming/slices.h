// Parts of a stored tensor as tensors of their own, without a copy. All of them keep the name of
// the whole.
#pragma once

#include "weights/source.h"

namespace tq {

// Requires of all: `tensor` has elements. StackItem and RowRange also: it is dense.

// One of the tensors stacked along the first dimension; dimensions after the second are merged into
// it.
SourceTensor StackItem(const SourceTensor& stack, int64_t index);
SourceTensor RowRange(const SourceTensor& tensor, int64_t begin, int64_t count);
// A matrix [rows, cols] that is stored as [cols, rows].
SourceTensor Transposed(const SourceTensor& tensor);
// Rows (or values of a vector) first, first + 2, ... Requires: an even number of rows.
SourceTensor EverySecondRow(const SourceTensor& tensor, int64_t first);

}  // namespace tq

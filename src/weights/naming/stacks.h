// Tensors that hold the matrices of all experts (or attention heads), one after another: each
// matrix under a name of its own. docs/formats/tensor_names.md lists the published forms.
#pragma once

#include <vector>

#include "weights/naming/fused.h"

namespace tq {

// The matrices of a stack are added to `out`, named; any other tensor is added as it is. Errors:
// kCorrupt (shapes that are no stack, a part without its weight).
Status AppendStackItems(const SourceTensor& tensor, const TensorLookup& find,
                        std::vector<SourceTensor>& out);

}  // namespace tq

// Projections that some writers store as one tensor: their rows under the names of the parts.
#pragma once

#include <functional>
#include <vector>

#include "weights/source.h"

namespace tq {

// Finds a tensor by canonical name before parts are taken; null: none.
using TensorLookup = std::function<const SourceTensor*(std::string_view)>;

// A fused projection's parts are added to `out`, named; any other tensor is added as it is.
// Errors: kCorrupt (rows that cannot be parted).
Status AppendFusedParts(const SourceTensor& tensor, const TensorLookup& find,
                        std::vector<SourceTensor>& out);

// Parts of a quantized matrix that belong to all of its rows.
bool IsSharedPart(std::string_view part);

}  // namespace tq

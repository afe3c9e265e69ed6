// The door of Backend::Prepare: is a stored matrix one that any kernel may trust?
#pragma once

#include <cstdint>

#include "base/status.h"
#include "codec/format.h"

namespace tq {

// Errors: kUnsupported (a group or codebook size that no kernel knows), kCorrupt (shape and parts
// contradict each other; NaN or infinity in scales, codebook or signs).
Status CheckStoredMatrix(const StoredMatrix& stored);

}  // namespace tq

// HostTensor: a named tensor as a checkpoint stores it. Never owns; the source that gave it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace tq {

using Shape = std::vector<int64_t>;  // outermost first, as in Hugging Face files

std::string ShapeString(const Shape& shape);  // "[4096, 11008]"
int64_t NumElements(const Shape& shape);      // shapes are checked for overflow when read

}  // namespace tq

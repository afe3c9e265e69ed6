// The tensor types that GGUF files may carry: size of a block, and the codec or dtype that reads
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "codec/format.h"
#include "tensor/dtype.h"

namespace tq {

struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  uint32_t block_values;
  uint32_t block_bytes;
  std::optional<CodecId> codec;  // none: the container can be read, the values cannot
};

// Null for ids that no file may carry.
const GgufTensorType* FindGgufTensorType(uint32_t id);

}  // namespace tq

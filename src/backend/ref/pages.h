// Reading KV pages one element at a time. Internal to backend/ref.
#pragma once

#include <cstdint>
#include <cstring>

#include "backend/ops.h"
#include "tensor/half.h"

namespace tq::ref {

// Element `index` of a tile.
inline float LoadElement(const KvLayout& layout, const std::byte* tile, int64_t index) {
  if (layout.type == KvType::kF32) {
    float value;
    std::memcpy(&value, tile + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, tile + index * 2, 2);
  return F16ToF32(bits);
}

// Where dim `dim` of the token in `slot` lies in a K tile.
inline int64_t KeyIndex(int64_t slot, int64_t dim) {
  return (dim / 2 * kPageTokens + slot) * 2 + dim % 2;
}

// The key at a position, [head_dim].
inline void LoadKey(const KvLayout& layout, const std::byte* k_tile, int64_t slot, float* key) {
  for (int64_t d = 0; d < layout.head_dim; ++d) {
    key[d] = LoadElement(layout, k_tile, KeyIndex(slot, d));
  }
}

}  // namespace tq::ref

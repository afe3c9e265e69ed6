// Scales that are a tensor of their own, one per `group` columns of `block_rows` rows, in any of
// the types that published checkpoints use.
#pragma once

#include <cstring>

#include "codec/float8.h"
#include "codec/format.h"
#include "tensor/half.h"

namespace tq {

// Entry `index` of a tensor of type F32, F16, BF16, F8_E4M3 or F8_E8M0.
inline float LoadScale(const std::byte* values, DType type, int64_t index) {
  const std::byte* at = values + index * static_cast<int64_t>(DTypeBytes(type));
  if (type == DType::kF8E4M3) return E4M3ToF32(static_cast<uint8_t>(*at));
  if (type == DType::kE8M0) return E8M0ToF32(static_cast<uint8_t>(*at));
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return type == DType::kF16 ? F16ToF32(bits) : Bf16ToF32(bits);
}

// Index of the scale (and bias) of a value in their tensors.
inline int64_t ScaleIndex(const StoredMatrix& m, int64_t row, int64_t col) {
  return row / m.block_rows * m.scale_cols() + col / m.format.group;
}

}  // namespace tq

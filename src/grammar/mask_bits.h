// Bits of a constraint's mask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tq {

inline void ClearMask(std::span<uint32_t> bits) {
  std::fill(bits.begin(), bits.end(), uint32_t{0});
}
inline void FillMaskWhole(std::span<uint32_t> bits) {
  std::fill(bits.begin(), bits.end(), ~uint32_t{0});
}

// Nothing for an id outside.
inline void SetMaskBit(std::span<uint32_t> bits, int32_t id, bool on) {
  const auto word = static_cast<size_t>(id) / 32;
  if (id < 0 || word >= bits.size()) return;
  const uint32_t bit = uint32_t{1} << (id % 32);
  bits[word] = on ? bits[word] | bit : bits[word] & ~bit;
}

inline bool MaskHas(std::span<const uint32_t> bits, int32_t id) {
  const auto word = static_cast<size_t>(id) / 32;
  return id >= 0 && word < bits.size() && (bits[word] >> (id % 32) & 1) != 0;
}

}  // namespace tq

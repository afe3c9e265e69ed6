// 8-bit floats: e4m3 (1 sign, 4 exponent bits with bias 7, 3 mantissa bits; 0x7F is NaN, there is
// no infinity) and e8m0 (a power of two, 2^(bits - 127); 0xFF is NaN).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tq {

inline bool IsNanE4M3(uint8_t bits) { return (bits & 0x7F) == 0x7F; }

namespace internal {
constexpr float DecodeE4M3(int bits) {
  const int exponent = bits >> 3 & 15;
  const int mantissa = bits & 7;
  // Mantissa in units of 2^-3, with the hidden one of normal numbers.
  float value = static_cast<float>(exponent == 0 ? mantissa : 8 + mantissa) * 0x1p-9f;
  for (int e = 1; e < exponent; ++e) value *= 2;
  return bits & 0x80 ? -value : value;
}
inline constexpr auto kE4M3 = [] {
  std::array<float, 256> table{};
  for (int bits = 0; bits < 256; ++bits) table[bits] = DecodeE4M3(bits);
  return table;
}();
}  // namespace internal

// Requires: not NaN (its pattern gives 480).
inline float E4M3ToF32(uint8_t bits) { return internal::kE4M3[bits]; }

// Requires: not NaN. 2^-127 is a denormal of f32.
inline float E8M0ToF32(uint8_t bits) {
  return std::bit_cast<float>(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
}

}  // namespace tq

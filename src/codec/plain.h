// Plain float formats: f32, f16, bf16, little-endian, row-major.
#pragma once

#include <cstring>

#include "codec/format.h"
#include "tensor/half.h"

namespace tq {

// An exponent of all ones is NaN or infinity; the loop has no branch so that it runs at memory
// speed.
template <typename Bits, Bits kExponent>
bool AllFinitePlain(std::span<const std::byte> bytes) {
  bool found = false;
  for (size_t i = 0; i + sizeof(Bits) <= bytes.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i, sizeof(Bits));
    found |= (bits & kExponent) == kExponent;
  }
  return !found;
}

struct PlainF32 {
  static constexpr const char* kName = "f32";
  static constexpr int kBlockValues = 1;
  static constexpr int kBlockBytes = 4;
  static constexpr auto AllFinite = AllFinitePlain<uint32_t, 0x7F800000u>;
  static void DecodeRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out) {
    std::memcpy(out, m.data + row * m.row_bytes + col * 4, static_cast<size_t>(n) * 4);
  }
};

template <float (*kConvert)(uint16_t)>
void DecodeHalfRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out) {
  const std::byte* in = m.data + row * m.row_bytes + col * 2;
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + i * 2, 2);
    out[i] = kConvert(bits);
  }
}

struct PlainF16 {
  static constexpr const char* kName = "f16";
  static constexpr int kBlockValues = 1;
  static constexpr int kBlockBytes = 2;
  static constexpr auto AllFinite = AllFinitePlain<uint16_t, 0x7C00>;
  static constexpr auto DecodeRow = DecodeHalfRow<F16ToF32>;
};

struct PlainBf16 {
  static constexpr const char* kName = "bf16";
  static constexpr int kBlockValues = 1;
  static constexpr int kBlockBytes = 2;
  static constexpr auto AllFinite = AllFinitePlain<uint16_t, 0x7F80>;
  static constexpr auto DecodeRow = DecodeHalfRow<Bf16ToF32>;
};

}  // namespace tq

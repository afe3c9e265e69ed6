// Small floats with scales of their own tensor: value = float * (scale / global_scale).
//   fp4: two e2m1 codes per byte, the low nibble first. mxfp4 (e8m0 scales per 32), nvfp4 (e4m3
//        scales per 16)
//   fp8: e4m3 bytes. mxfp8 (e8m0 scales per 32), and weights with f32 or bf16 scales per block of
//        rows and columns, per row, or one for all
#pragma once

#include <algorithm>
#include <span>

#include "codec/block_codec.h"
#include "codec/group_scales.h"

namespace tq {

template <typename Code>
struct FloatGroups {
  static constexpr int kBlockValues = 1;
  static constexpr int kBlockBytes = 0;
  static void DecodeRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out) {
    const auto* codes = reinterpret_cast<const uint8_t*>(m.data + row * m.row_bytes);
    for (int64_t i = 0; i < n;) {
      float scale = LoadScale(m.scales, m.scale_type, ScaleIndex(m, row, col + i));
      if (m.global_scale != 1.0f) scale = scale / m.global_scale;
      const int64_t end = std::min(n, i + m.format.group - (col + i) % m.format.group);
      for (; i < end; ++i) out[i] = scale * Code::Value(codes, col + i);
    }
  }
};

struct Fp4 : FloatGroups<Fp4> {
  static constexpr const char* kName = "fp4";
  static bool AllFinite(std::span<const std::byte>) { return true; }
  static float Value(const uint8_t* codes, int64_t i) {
    return 0.5f * static_cast<float>(kE2M1Doubled[codes[i / 2] >> (i % 2 * 4) & 15]);
  }
};

struct Fp8 : FloatGroups<Fp8> {
  static constexpr const char* kName = "fp8";
  static bool AllFinite(std::span<const std::byte> bytes) {
    bool found = false;
    for (const std::byte byte : bytes) found |= IsNanE4M3(static_cast<uint8_t>(byte));
    return !found;
  }
  static float Value(const uint8_t* codes, int64_t i) { return E4M3ToF32(codes[i]); }
};

}  // namespace tq

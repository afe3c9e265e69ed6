// NVFP4, 64 values in 36 bytes: 4 scales (e4m3, sign ignored, 0x7f means 0), one per 16 values,
// then 8 bytes of 4-bit floats per 16 values (low nibbles: values 0..7, high: 8..15). scale * f[q].
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Nvfp4 : BlockCodec<Nvfp4> {
  static constexpr const char* kName = "nvfp4";
  static constexpr int kBlockValues = 64;
  static constexpr int kBlockBytes = 36;
  static void DecodeBlock(const uint8_t* in, float* out) {
    for (int s = 0; s < 4; ++s) {
      const float scale = HalfScale(in[s] & 0x7F);
      const uint8_t* codes = in + 4 + s * 8;
      for (int j = 0; j < 8; ++j) {
        out[s * 16 + j] = scale * static_cast<float>(kE2M1Doubled[codes[j] & 15]);
        out[s * 16 + j + 8] = scale * static_cast<float>(kE2M1Doubled[codes[j] >> 4]);
      }
    }
  }

 private:
  static float HalfScale(int bits) {
    if (bits == 0x7F) return 0.0f;
    const int exponent = bits >> 3;
    const int mantissa = bits & 7;
    if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
    return static_cast<float>(8 + mantissa) * static_cast<float>(1 << exponent) * 0x1p-11f;
  }
};

}  // namespace tq

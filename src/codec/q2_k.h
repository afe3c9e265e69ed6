// Q2_K, 256 values in 84 bytes: 16 bytes of scale (low nibble) and min (high nibble) per 16 values,
// 64 bytes of 2-bit codes, f16 d, f16 dmin. d * scale * q - dmin * min.
// 128 values come from 32 bytes: value 32k + l is bits 2k, 2k + 1 of byte l.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q2K : BlockCodec<Q2K> {
  static constexpr const char* kName = "q2_k";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 84;
  static constexpr std::array kScalesAt = {80, 82};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in + 80);
    const float dmin = LoadF16(in + 82);
    for (int i = 0; i < 256; ++i) {
      const uint8_t scale = in[i / 16];
      const uint8_t byte = in[16 + i / 128 * 32 + i % 32];
      const int q = (byte >> (i / 32 % 4 * 2)) & 3;
      out[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) -
               dmin * static_cast<float>(scale >> 4);
    }
  }
};

}  // namespace tq

// Q5_K, 256 values in 176 bytes: f16 d, f16 dmin, 12 bytes of scales, 32 bytes of fifth bits (value
// 32j + l: bit j of byte l), 128 bytes of codes as in Q4_K. d * scale * q - dmin * min.
#pragma once

#include "codec/block_codec.h"
#include "codec/k_scales.h"

namespace tq {

struct Q5K : BlockCodec<Q5K> {
  static constexpr const char* kName = "q5_k";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 176;
  static constexpr std::array kScalesAt = {0, 2};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    const float dmin = LoadF16(in + 2);
    for (int j = 0; j < 8; ++j) {
      const KScale s = UnpackKScale(in + 4, j);
      const float scale = d * static_cast<float>(s.scale);
      const float min = dmin * static_cast<float>(s.min);
      for (int l = 0; l < 32; ++l) {
        const int low = (in[48 + j / 2 * 32 + l] >> (j % 2 * 4)) & 15;
        const int q = low | ((in[16 + l] >> j) & 1) << 4;
        out[j * 32 + l] = scale * static_cast<float>(q) - min;
      }
    }
  }
};

}  // namespace tq

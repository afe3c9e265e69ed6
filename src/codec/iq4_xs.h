// IQ4_XS, 256 values in 136 bytes: f16 d, u16 high bits and 4 bytes of low nibbles of eight 6-bit
// scales, 8 times 16 bytes (low nibbles: values 0..15, high: 16..31). d * (scale - 32) * level[q].
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Iq4Xs : BlockCodec<Iq4Xs> {
  static constexpr const char* kName = "iq4_xs";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 136;
  static constexpr std::array kScalesAt = {0};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    const int high = LoadU16(in + 2);
    for (int j = 0; j < 8; ++j) {
      const int low = (in[4 + j / 2] >> (j % 2 * 4)) & 15;
      const float scale = d * static_cast<float>((low | ((high >> (2 * j)) & 3) << 4) - 32);
      const uint8_t* codes = in + 8 + j * 16;
      for (int l = 0; l < 16; ++l) {
        out[j * 32 + l] = scale * static_cast<float>(kIq4Levels[codes[l] & 15]);
        out[j * 32 + l + 16] = scale * static_cast<float>(kIq4Levels[codes[l] >> 4]);
      }
    }
  }
};

}  // namespace tq

// Q5_0, 32 values in 22 bytes: f16 d, u32 fifth bits (bit j: value j), 16 bytes (low nibbles:
// values 0..15, high: 16..31). d * (q - 16).
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q5_0 : BlockCodec<Q5_0> {
  static constexpr const char* kName = "q5_0";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 22;
  static constexpr std::array kScalesAt = {0};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    const uint32_t fifth = LoadU32(in + 2);
    for (int j = 0; j < 16; ++j) {
      const int low = (in[6 + j] & 15) | static_cast<int>((fifth >> j) & 1) << 4;
      const int high = (in[6 + j] >> 4) | static_cast<int>((fifth >> (j + 16)) & 1) << 4;
      out[j] = d * static_cast<float>(low - 16);
      out[j + 16] = d * static_cast<float>(high - 16);
    }
  }
};

}  // namespace tq

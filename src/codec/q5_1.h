// Q5_1, 32 values in 24 bytes: f16 d, f16 m, u32 fifth bits (bit j: value j), 16 bytes (low
// nibbles: values 0..15, high: 16..31). d * q + m.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q5_1 : BlockCodec<Q5_1> {
  static constexpr const char* kName = "q5_1";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 24;
  static constexpr std::array kScalesAt = {0, 2};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    const float m = LoadF16(in + 2);
    const uint32_t fifth = LoadU32(in + 4);
    for (int j = 0; j < 16; ++j) {
      const int low = (in[8 + j] & 15) | static_cast<int>((fifth >> j) & 1) << 4;
      const int high = (in[8 + j] >> 4) | static_cast<int>((fifth >> (j + 16)) & 1) << 4;
      out[j] = d * static_cast<float>(low) + m;
      out[j + 16] = d * static_cast<float>(high) + m;
    }
  }
};

}  // namespace tq

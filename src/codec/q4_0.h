// Q4_0, 32 values in 18 bytes: f16 d, 16 bytes (low nibbles: values 0..15, high: 16..31). d * (q -
// 8).
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q4_0 : BlockCodec<Q4_0> {
  static constexpr const char* kName = "q4_0";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 18;
  static constexpr std::array kScalesAt = {0};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>((in[2 + j] & 15) - 8);
      out[j + 16] = d * static_cast<float>((in[2 + j] >> 4) - 8);
    }
  }
};

}  // namespace tq

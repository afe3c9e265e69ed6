// Q4_1, 32 values in 20 bytes: f16 d, f16 m, 16 bytes (low nibbles: values 0..15, high: 16..31).
// d * q + m.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q4_1 : BlockCodec<Q4_1> {
  static constexpr const char* kName = "q4_1";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 20;
  static constexpr std::array kScalesAt = {0, 2};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    const float m = LoadF16(in + 2);
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(in[4 + j] & 15) + m;
      out[j + 16] = d * static_cast<float>(in[4 + j] >> 4) + m;
    }
  }
};

}  // namespace tq

// Q2_0, 64 values in 18 bytes: f16 d, 16 bytes, value 4j + i is bits 2i, 2i + 1 of byte j. d * (q -
// 1).
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q2_0 : BlockCodec<Q2_0> {
  static constexpr const char* kName = "q2_0";
  static constexpr int kBlockValues = 64;
  static constexpr int kBlockBytes = 18;
  static constexpr std::array kScalesAt = {0};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    for (int i = 0; i < 64; ++i) {
      const int q = (in[2 + i / 4] >> (i % 4 * 2)) & 3;
      out[i] = d * static_cast<float>(q - 1);
    }
  }
};

}  // namespace tq

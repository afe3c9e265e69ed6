// Q1_0, 128 values in 18 bytes: f16 d, 16 bytes, bit i of byte j is value 8j + i. d or -d.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q1_0 : BlockCodec<Q1_0> {
  static constexpr const char* kName = "q1_0";
  static constexpr int kBlockValues = 128;
  static constexpr int kBlockBytes = 18;
  static constexpr std::array kScalesAt = {0};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    for (int i = 0; i < 128; ++i) out[i] = ((in[2 + i / 8] >> (i % 8)) & 1) != 0 ? d : -d;
  }
};

}  // namespace tq

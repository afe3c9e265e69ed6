// Q8_0, 32 values in 34 bytes: f16 d, 32 i8. d * q.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q8_0 : BlockCodec<Q8_0> {
  static constexpr const char* kName = "q8_0";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 34;
  static constexpr std::array kScalesAt = {0};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(static_cast<int8_t>(in[2 + j]));
  }
};

}  // namespace tq

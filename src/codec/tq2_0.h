// TQ2_0, 256 values in 66 bytes: 64 bytes of 2-bit codes, f16 d. d * (q - 1).
// 128 values come from 32 bytes: value 32k + l is bits 2k, 2k + 1 of byte l.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Tq2_0 : BlockCodec<Tq2_0> {
  static constexpr const char* kName = "tq2_0";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 66;
  static constexpr std::array kScalesAt = {64};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in + 64);
    for (int i = 0; i < 256; ++i) {
      const int q = (in[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
      out[i] = d * static_cast<float>(q - 1);
    }
  }
};

}  // namespace tq

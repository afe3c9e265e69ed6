// Q2_K, 256 values in 84 bytes: 16 bytes of scale (low nibble) and min (high nibble) per 16 values,
// 64 bytes of 2-bit codes, f16 d, f16 dmin. d * scale * q - dmin * min.
// 128 values come from 32 bytes: value 32k + l is bits 2k, 2k + 1 of byte l.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q2K : GridCodec<Q2K> {
  static constexpr const char* kName = "q2_k";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 84;
  static constexpr std::array kScalesAt = {80, 82};
  static constexpr Grid kGrid = WithFactors(WithMin(LinearGrid(16, 2, 0)), 16);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in + 80);
    out.min_base = -LoadF16(in + 82);
    for (size_t g = 0; g < 16; ++g) {
      out.factors[g] = static_cast<int8_t>(in[g] & 15);
      out.min_factors[g] = static_cast<int8_t>(in[g] >> 4);
    }
    for (size_t i = 0; i < 256; ++i) {
      out.codes[i] = (in[16 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
    }
  }
};

}  // namespace tq

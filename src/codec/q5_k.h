// Q5_K, 256 values in 176 bytes: f16 d, f16 dmin, 12 bytes of scales, 32 bytes of fifth bits (value
// 32j + l: bit j of byte l), 128 bytes of codes as in Q4_K. d * scale * q - dmin * min.
#pragma once

#include "codec/block_codec.h"
#include "codec/k_scales.h"

namespace tq {

struct Q5K : GridCodec<Q5K> {
  static constexpr const char* kName = "q5_k";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 176;
  static constexpr std::array kScalesAt = {0, 2};
  static constexpr Grid kGrid = WithFactors(WithMin(LinearGrid(32, 8, 0)), 8);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    DecodeKScales(in, out);
    for (size_t j = 0; j < 8; ++j) {
      for (size_t l = 0; l < 32; ++l) {
        const int low = (in[48 + j / 2 * 32 + l] >> (j % 2 * 4)) & 15;
        out.codes[j * 32 + l] = static_cast<uint8_t>(low | ((in[16 + l] >> j) & 1) << 4);
      }
    }
  }
};

}  // namespace tq

// Q4_K, 256 values in 144 bytes: f16 d, f16 dmin, 12 bytes of scales, 128 bytes of codes: each 32
// bytes hold 32 values in their low nibbles, then the next 32 in the high ones. d * scale * q -
// dmin * min.
#pragma once

#include "codec/block_codec.h"
#include "codec/k_scales.h"

namespace tq {

struct Q4K : GridCodec<Q4K> {
  static constexpr const char* kName = "q4_k";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 144;
  static constexpr std::array kScalesAt = {0, 2};
  static constexpr Grid kGrid = WithFactors(WithMin(LinearGrid(32, 4, 0)), 8);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    DecodeKScales(in, out);
    for (size_t j = 0; j < 8; ++j) {
      for (size_t l = 0; l < 32; ++l) {
        out.codes[j * 32 + l] = (in[16 + j / 2 * 32 + l] >> (j % 2 * 4)) & 15;
      }
    }
  }
};

}  // namespace tq

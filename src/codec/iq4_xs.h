// IQ4_XS, 256 values in 136 bytes: f16 d, u16 high bits and 4 bytes of low nibbles of eight 6-bit
// scales, 8 times 16 bytes (low nibbles: values 0..15, high: 16..31). d * (scale - 32) * level[q].
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Iq4Xs : GridCodec<Iq4Xs> {
  static constexpr const char* kName = "iq4_xs";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 136;
  static constexpr std::array kScalesAt = {0};
  static constexpr Grid kGrid = WithFactors(LinearGrid(32, 8, -128), 8);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in);
    const int high = LoadU16(in + 2);
    for (size_t j = 0; j < 8; ++j) {
      const int low = (in[4 + j / 2] >> (j % 2 * 4)) & 15;
      out.factors[j] = static_cast<int8_t>((low | ((high >> (2 * j)) & 3) << 4) - 32);
      const uint8_t* codes = in + 8 + j * 16;
      for (size_t l = 0; l < 16; ++l) {
        out.codes[j * 32 + l] = static_cast<uint8_t>(kIq4Levels[codes[l] & 15] + 128);
        out.codes[j * 32 + l + 16] = static_cast<uint8_t>(kIq4Levels[codes[l] >> 4] + 128);
      }
    }
  }
};

}  // namespace tq

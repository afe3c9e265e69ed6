// Q3_K, 256 values in 110 bytes: 32 bytes of high bits (value 32k + l: bit k of byte l), 64 bytes
// of low bits (planes as in Q2_K), 12 bytes of 6-bit scales, f16 d. d * (scale - 32) * (q - (high ?
// 0 : 4)).
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q3K : GridCodec<Q3K> {
  static constexpr const char* kName = "q3_k";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 110;
  static constexpr std::array kScalesAt = {108};
  static constexpr Grid kGrid = WithFactors(LinearGrid(16, 3, -4), 16);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in + 108);
    for (int g = 0; g < 16; ++g) {
      out.factors[static_cast<size_t>(g)] = static_cast<int8_t>(Scale(in + 96, g) - 32);
    }
    for (size_t i = 0; i < 256; ++i) {
      const int low = (in[32 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
      const int high = (in[i % 32] >> (i / 32)) & 1;
      out.codes[i] = static_cast<uint8_t>(low | high << 2);
    }
  }

 private:
  // Scale j of 16: four low bits packed two a byte (8 apart), two high bits packed four a byte.
  static int Scale(const uint8_t* x, int j) {
    const int low = j < 8 ? x[j] & 15 : x[j - 8] >> 4;
    return low | ((x[8 + j % 4] >> (j / 4 * 2)) & 3) << 4;
  }
};

}  // namespace tq

// Q5_0, 32 values in 22 bytes: f16 d, u32 fifth bits (bit j: value j), 16 bytes (low nibbles:
// values 0..15, high: 16..31). d * (q - 16).
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q5_0 : GridCodec<Q5_0> {
  static constexpr const char* kName = "q5_0";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 22;
  static constexpr std::array kScalesAt = {0};
  static constexpr Grid kGrid = LinearGrid(32, 8, -16);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in);
    const uint32_t fifth = LoadU32(in + 2);
    for (size_t j = 0; j < 16; ++j) {
      out.codes[j] = static_cast<uint8_t>((in[6 + j] & 15) | (fifth >> j & 1) << 4);
      out.codes[j + 16] = static_cast<uint8_t>(in[6 + j] >> 4 | (fifth >> (j + 16) & 1) << 4);
    }
  }
};

}  // namespace tq

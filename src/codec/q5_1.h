// Q5_1, 32 values in 24 bytes: f16 d, f16 m, u32 fifth bits (bit j: value j), 16 bytes (low
// nibbles: values 0..15, high: 16..31). d * q + m.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q5_1 : GridCodec<Q5_1> {
  static constexpr const char* kName = "q5_1";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 24;
  static constexpr std::array kScalesAt = {0, 2};
  static constexpr Grid kGrid = WithMin(LinearGrid(32, 8, 0));
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in);
    out.min_base = LoadF16(in + 2);
    const uint32_t fifth = LoadU32(in + 4);
    for (size_t j = 0; j < 16; ++j) {
      out.codes[j] = static_cast<uint8_t>((in[8 + j] & 15) | (fifth >> j & 1) << 4);
      out.codes[j + 16] = static_cast<uint8_t>(in[8 + j] >> 4 | (fifth >> (j + 16) & 1) << 4);
    }
  }
};

}  // namespace tq

// Q4_0, 32 values in 18 bytes: f16 d, 16 bytes (low nibbles: values 0..15, high: 16..31). d * (q -
// 8).
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q4_0 : GridCodec<Q4_0> {
  static constexpr const char* kName = "q4_0";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 18;
  static constexpr std::array kScalesAt = {0};
  static constexpr Grid kGrid = LinearGrid(32, 4, -8);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in);
    for (size_t j = 0; j < 16; ++j) {
      out.codes[j] = in[2 + j] & 15;
      out.codes[j + 16] = in[2 + j] >> 4;
    }
  }
};

}  // namespace tq

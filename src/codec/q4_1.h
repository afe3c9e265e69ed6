// Q4_1, 32 values in 20 bytes: f16 d, f16 m, 16 bytes (low nibbles: values 0..15, high: 16..31).
// d * q + m.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q4_1 : GridCodec<Q4_1> {
  static constexpr const char* kName = "q4_1";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 20;
  static constexpr std::array kScalesAt = {0, 2};
  static constexpr Grid kGrid = WithMin(LinearGrid(32, 4, 0));
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in);
    out.min_base = LoadF16(in + 2);
    for (size_t j = 0; j < 16; ++j) {
      out.codes[j] = in[4 + j] & 15;
      out.codes[j + 16] = in[4 + j] >> 4;
    }
  }
};

}  // namespace tq

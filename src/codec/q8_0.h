// Q8_0, 32 values in 34 bytes: f16 d, 32 i8. d * q.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q8_0 : GridCodec<Q8_0> {
  static constexpr const char* kName = "q8_0";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 34;
  static constexpr std::array kScalesAt = {0};
  static constexpr Grid kGrid = LinearGrid(32, 8, -128);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in);
    for (size_t j = 0; j < 32; ++j) out.codes[j] = in[2 + j] ^ 0x80;
  }
};

}  // namespace tq

// MXFP4, 32 values in 17 bytes: u8 exponent e, 16 bytes (low nibbles: values 0..15, high: 16..31)
// of 4-bit floats. 2^(e - 127) * f[q].
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Mxfp4 : GridCodec<Mxfp4> {
  static constexpr const char* kName = "mxfp4";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 17;
  static constexpr Grid kGrid = E2M1Grid(32, DType::kBf16);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    // 2^(e - 128), denormal for e < 2; the halved scale keeps e = 255 finite.
    const uint32_t e = in[0];
    out.base = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    for (size_t j = 0; j < 16; ++j) {
      out.codes[j] = in[1 + j] & 15;
      out.codes[j + 16] = in[1 + j] >> 4;
    }
  }
};

}  // namespace tq

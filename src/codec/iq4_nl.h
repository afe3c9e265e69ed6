// IQ4_NL, 32 values in 18 bytes: f16 d, 16 bytes (low nibbles: values 0..15, high: 16..31).
// d * level[q].
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Iq4Nl : GridCodec<Iq4Nl> {
  static constexpr const char* kName = "iq4_nl";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 18;
  static constexpr std::array kScalesAt = {0};
  static constexpr Grid kGrid = LinearGrid(32, 8, -128);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in);
    for (size_t j = 0; j < 16; ++j) {
      out.codes[j] = static_cast<uint8_t>(kIq4Levels[in[2 + j] & 15] + 128);
      out.codes[j + 16] = static_cast<uint8_t>(kIq4Levels[in[2 + j] >> 4] + 128);
    }
  }
};

}  // namespace tq

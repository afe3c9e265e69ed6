// IQ4_NL, 32 values in 18 bytes: f16 d, 16 bytes (low nibbles: values 0..15, high: 16..31).
// d * level[q].
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Iq4Nl : BlockCodec<Iq4Nl> {
  static constexpr const char* kName = "iq4_nl";
  static constexpr int kBlockValues = 32;
  static constexpr int kBlockBytes = 18;
  static constexpr std::array kScalesAt = {0};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in);
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(kIq4Levels[in[2 + j] & 15]);
      out[j + 16] = d * static_cast<float>(kIq4Levels[in[2 + j] >> 4]);
    }
  }
};

}  // namespace tq

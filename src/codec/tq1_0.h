// TQ1_0, 256 values in 54 bytes: 48 bytes of five trits, 4 bytes of four trits, f16 d. d * (t - 1).
// Trit n of byte b is (((b * 3^n) mod 256) * 3) >> 8. Order: bytes 0..31 (n outer), 32..47, 48..51.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Tq1_0 : BlockCodec<Tq1_0> {
  static constexpr const char* kName = "tq1_0";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 54;
  static constexpr std::array kScalesAt = {52};
  static void DecodeBlock(const uint8_t* in, float* out) {
    const float d = LoadF16(in + 52);
    out = DecodeTrits(in, 32, 5, d, out);
    out = DecodeTrits(in + 32, 16, 5, d, out);
    DecodeTrits(in + 48, 4, 4, d, out);
  }

 private:
  static float* DecodeTrits(const uint8_t* in, int bytes, int trits, float d, float* out) {
    unsigned power = 1;
    for (int n = 0; n < trits; ++n, power *= 3) {
      for (int j = 0; j < bytes; ++j) {
        const unsigned trit = ((in[j] * power % 256) * 3) >> 8;
        *out++ = d * static_cast<float>(static_cast<int>(trit) - 1);
      }
    }
    return out;
  }
};

}  // namespace tq

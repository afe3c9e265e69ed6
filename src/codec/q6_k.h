// Q6_K, 256 values in 210 bytes: 128 bytes of low nibbles, 64 bytes of two high bits, 16 i8 scales
// (one per 16 values), f16 d. d * scale * (q - 32). Per 128 values (64 low bytes, 32 high bytes)
// value 32k + l takes low byte l + 32 (k & 1), its high nibble for k >= 2, and bits 2k, 2k + 1 of
// high byte l.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct Q6K : GridCodec<Q6K> {
  static constexpr const char* kName = "q6_k";
  static constexpr int kBlockValues = 256;
  static constexpr int kBlockBytes = 210;
  static constexpr std::array kScalesAt = {208};
  static constexpr Grid kGrid = WithFactors(LinearGrid(16, 8, -32), 16);
  static void DecodeGrid(const uint8_t* in, GridBlock& out) {
    out.base = LoadF16(in + 208);
    for (size_t g = 0; g < 16; ++g) out.factors[g] = static_cast<int8_t>(in[192 + g]);
    for (size_t i = 0; i < 256; ++i) {
      const size_t half = i / 128;
      const size_t k = i / 32 % 4;
      const int low = (in[half * 64 + k % 2 * 32 + i % 32] >> (k / 2 * 4)) & 15;
      const int high = (in[128 + half * 32 + i % 32] >> (k * 2)) & 3;
      out.codes[i] = static_cast<uint8_t>(low | high << 4);
    }
  }
};

}  // namespace tq

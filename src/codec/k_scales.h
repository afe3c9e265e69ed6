// The 12 bytes of 6-bit scales and minima that Q4_K and Q5_K share, one pair per 32 values.
#pragma once

#include "codec/block_codec.h"

namespace tq {

struct KScale {
  int scale;
  int min;
};

// j = 0 .. 7.
inline KScale UnpackKScale(const uint8_t* x, int j) {
  if (j < 4) return {x[j] & 63, x[j + 4] & 63};
  return {(x[j + 4] & 15) | (x[j - 4] >> 6) << 4, (x[j + 4] >> 4) | (x[j] >> 6) << 4};
}

// What Q4_K and Q5_K blocks begin with: f16 d, f16 dmin, the 12 bytes.
inline void DecodeKScales(const uint8_t* in, GridBlock& out) {
  out.base = LoadF16(in);
  out.min_base = -LoadF16(in + 2);
  for (size_t j = 0; j < 8; ++j) {
    const KScale s = UnpackKScale(in + 4, static_cast<int>(j));
    out.factors[j] = static_cast<int8_t>(s.scale);
    out.min_factors[j] = static_cast<int8_t>(s.min);
  }
}

}  // namespace tq

// Writing rows of the affine format: the least and the largest value of a group become codes, the
// larger of the two exactly. The same bits as MLX on a CPU, so that embeddings and the like that
// are quantized here and there are interchangeable. Reading: affine.h.
#pragma once

#include <cstdint>
#include <span>

namespace tq {

struct AffineSpec {
  int bits = 4;    // 2, 3, 4, 5, 6, 8
  int group = 64;  // 32, 64, 128
};

// Bytes of the codes of a row. Requires: cols is a multiple of 32.
inline int64_t AffineRowBytes(int bits, int64_t cols) { return cols * bits / 8; }

// codes[AffineRowBytes] are zeroed and filled: one little-endian bit stream. scales and
// biases [cols / group] are not rounded to the type that the file keeps; the codes are chosen with
// these. Requires: cols % group == 0. False: a value is NaN or infinite, the output is of no use.
bool EncodeAffineRow(const AffineSpec& spec, std::span<const float> row, uint8_t* codes,
                     float* scales, float* biases);

}  // namespace tq

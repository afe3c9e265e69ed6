// Integer codes with a scale and perhaps a bias per group of columns: the affine format of MLX, and
// the symmetric one of compressed-tensors.
//   data    [rows] of cols * bits bits, one little-endian bit stream per row (bits 2, 3, 4, 5, 6,
//   8;
//           codes of 3, 5 and 6 bits straddle bytes and words)
//   scales  [rows, cols / group], biases the same: value = scale * code + bias, f32
//   without biases the code is a number around 2^(bits - 1): value = scale * (code - 2^(bits - 1))
#pragma once

#include <span>

#include "codec/format.h"

namespace tq {

struct Affine {
  static constexpr const char* kName = "affine";
  static constexpr int kBlockValues = 1;
  static constexpr int kBlockBytes = 0;
  static void DecodeRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out);
  // The raw codes.
  static void DecodeCodes(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, uint8_t* out);
  static bool AllFinite(std::span<const std::byte>) { return true; }  // codes have no bad value
};

}  // namespace tq

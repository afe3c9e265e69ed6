// The one-bit residual of TurboQuant: what the codes of a row leave out, as the signs of a random
// projection and a length. Reading it back: weights/qjl_residual.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tq {

// Words of bits per row.
inline int64_t QjlWords(int64_t cols) { return (cols + 31) / 32; }

// The signs of the projection, the same for all matrices of n columns.
std::vector<float> QjlSigns(int64_t n);

// residual[n]: values of a row minus values of its codes rounded to f16, in the basis of the codes;
// overwritten.
// words[(n + 31) / 32]: bit i is set when entry i of H(signs * residual) is >= 0. Returns the
// length of the residual.
float EncodeQjlRow(std::span<float> residual, std::span<const float> signs, uint32_t* words);

}  // namespace tq

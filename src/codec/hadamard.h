// The TurboQuant rotation: block rule, matrices of the 12/20/28 families, signs by Threefry.
// Source: docs/formats/turboquant.md (checked bit for bit against MLX's transform).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tq {

// A block of n = m * 2^k columns, m in {1, 12, 20, 28}.
struct HadamardBlock {
  int64_t size = 1;
  int m = 1;
  int64_t pow2 = 1;  // size / m
};

// The largest supported block that divides dim (1 when dim is odd and has no family).
HadamardBlock HadamardBlockFor(int64_t dim);

// Entry (row, col) of the m x m matrix, +1 or -1. m in {12, 20, 28}.
int HadamardEntry(int m, int row, int col);
// The whole matrix as kernels read it, four rows together: [m / 4][m][4], entry (4 a + b, c) at
// (a * m + c) * 4 + b. Static memory. m in {12, 20, 28}.
const float* HadamardEntriesByFour(int m);

// x[dim] <- H x, blockwise, f32, in the fixed order of docs/numerics.md: butterflies h = 1, 2, 4,
// ... on contiguous rows (a + b, a - b), then the m part summed over c ascending, then one
// multiplication by the rounded f32 of 1 / sqrt(size). dim = x.size().
void HadamardForward(std::span<float> x);
// x <- H^T x: the inverse (not the same as the forward transform for m = 20, 28).
void HadamardInverse(std::span<float> x);

// Signs [n], each +1 or -1, of the reference's generator.
std::vector<float> TurboQuantSigns(uint64_t seed, int64_t n);
// rotation_seed + CRC32(path) mod 2^31.
uint64_t TurboQuantLayerSeed(uint64_t rotation_seed, std::string_view module_path);
uint32_t Crc32(std::string_view bytes);

}  // namespace tq

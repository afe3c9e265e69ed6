// TurboQuant weights: codes packed in u32 words along a row, one f16 RMS scale per group of rotated
// columns, one small codebook per matrix. value = f16 codebook[code] * f16 scale, exact in f32.
// Layout of every tensor: docs/formats/turboquant.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/format.h"

namespace tq {

struct TurboQuant {
  static constexpr const char* kName = "turboquant";
  static constexpr int kBlockValues = 1;
  static constexpr int kBlockBytes = 0;
  static void DecodeRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out);
  // Codes have no bad value; codebook, scales and signs are tensors of their own.
  static bool AllFinite(std::span<const std::byte>) { return true; }
  // The raw codes (0 .. entries - 1), for repacking.
  static void DecodeCodes(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, uint8_t* out);
};

// Values per u32 word: 32, 16, 10, 8 at 1..4 bits; 20 for trits (codebook of 3 entries).
int TurboQuantValuesPerWord(int codebook_entries);
inline int64_t TurboQuantWords(int codebook_entries, int64_t cols) {
  const int per_word = TurboQuantValuesPerWord(codebook_entries);
  return (cols + per_word - 1) / per_word;
}

// The Lloyd-Max codebooks of N(0, 1): `centroids` as published (f32), `boundaries` between them
// (f32, a value equal to a boundary takes the higher cell). entries in {2, 3, 4, 8, 16}.
struct LloydMaxTable {
  std::vector<float> centroids;
  std::vector<float> boundaries;
  std::vector<float> stored;  // centroids rounded to f16, as files carry them
};
const LloydMaxTable& LloydMaxCodebook(int entries);

// An integer stand-in for a codebook: value ~ step * integers[i], |integers[i]| <= 63.
// Deterministic, f64, least squares weighted by Gaussian cell probability. Used by the int8
// kernels. A codebook of zeros, or with an entry that is not finite, gives integers and step 0.
struct IntegerCodebook {
  std::array<int8_t, 16> integers{};
  int entries = 0;
  float step = 0;
};
IntegerCodebook FitIntegerCodebook(std::span<const float> codebook);

}  // namespace tq

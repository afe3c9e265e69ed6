// Grid: how a format places its values on integers, for kernels that multiply integers:
//   value = scale * integer + min      per group of columns; formats without min leave it out
//   scale = base * factor, min = min_base * min_factor   where groups share a base; factors are
//                                                        integers, else 1
// Products of base and factor, and of scale and integer, are exact in f32 (but for f32 bases).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/format.h"

namespace tq {

struct Grid {
  int group = 0;      // columns per scale: 16, 32, 64 or 128
  int code_bits = 0;  // 2, 3 or 4: integer = integers[code]; 8: integer = code + offset
  std::array<int8_t, 16> integers = {};  // largest - smallest <= 126
  int offset = 0;
  bool has_min = false;
  int base_groups = 1;            // groups that share a base
  DType base_type = DType::kF16;  // holds every base exactly: F16, BF16 or F32

  int Integer(int code) const {
    return code_bits == 8 ? code + offset : integers[static_cast<size_t>(code)];
  }
  bool has_factors() const { return base_groups > 1; }
};

// Codes 0, 1, ... stand for first, first + 1, ...
constexpr Grid LinearGrid(int group, int code_bits, int first) {
  Grid grid;
  grid.group = group;
  grid.code_bits = code_bits;
  grid.offset = first;
  if (code_bits == 8) return grid;
  for (int i = 0; i < 1 << code_bits; ++i) {
    grid.integers[static_cast<size_t>(i)] = static_cast<int8_t>(first + i);
  }
  return grid;
}

// One stored block of up to 256 values.
struct GridBlock {
  std::array<uint8_t, 256> codes;
  std::array<int8_t, 16> factors;  // of its groups, when groups share a base; set to 1 before
  std::array<int8_t, 16> min_factors;
  float base = 0.0f;
  float min_base = 0.0f;
};

// One row of a matrix.
struct GridRow {
  std::vector<uint8_t> codes;    // [cols]
  std::vector<float> bases;      // [cols / (group * base_groups)]
  std::vector<float> min_bases;  // the same; 0 without min
  std::vector<int8_t> factors;   // [cols / group]
  std::vector<int8_t> min_factors;
};

// nullopt: the format is no grid (floats, codebooks, trits, scales per several rows).
std::optional<Grid> GridOf(const StoredMatrix& matrix);
// grid: GridOf(matrix). Vectors of `out` are resized.
void DecodeGridRow(const StoredMatrix& matrix, const Grid& grid, int64_t row, GridRow& out);

}  // namespace tq

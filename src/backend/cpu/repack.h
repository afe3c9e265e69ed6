// tile16: how the CPU kernels want weights. A matrix [N, K] becomes tiles of 16 rows (the last one
// padded with zero rows), so that a vector holds one value of each row and no sum crosses lanes.
//
// Codes of TurboQuant matrices and grids: 64-byte vectors, 16 rows x 4 columns; byte 4 r + j of a
// vector belongs to row r and column 4 t + j of step t. A unit is the smallest run of whole
// vectors:
//   bits  unit       columns  where the code of step t sits in its byte
//   8     1 vector   4        all of it
//   4     1 vector   8        t = 0: bits 0-3, t = 1: bits 4-7
//   2     1 vector   16       bits 2t, 2t + 1
//   3     3 vectors  32       a: t = 0 bits 0-2, t = 1 bits 3-5; b: t = 2, 3; c: t = 4, 5;
//                             t = 6 and 7 are the 6-bit string of bits 6-7 of a, then b, then c
// 1-bit codes and trits are kept as 2-bit ones; 3-bit codes in groups of 16 as 4-bit ones.
// Scales follow in an array of their own: f16 [tiles][K / group][16]; of grids see GridScales.
// Floats: see kernels/float_ops.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/float_ops.h"
#include "codec/format.h"
#include "codec/grid.h"

namespace tq {

// Bits of a code in memory: 2, 3 or 4.
int LayoutBits(int codebook_entries, int group);
// The same for a grid; 8 too.
int LayoutBits(const Grid& grid);

// codes: CodeTileBytes; scales: f16 [K / group][16]. Rows beyond the matrix are zero. ops: the
// kernels that do full tiles faster; null: plain code, the definition of the layout.
void RepackCodeTile(const StoredMatrix& stored, int layout_bits, int64_t tile, std::byte* codes,
                    uint16_t* scales, const FloatOps* ops);

// Where the scales and mins of one tile of a grid go: base_bytes apart per entry, [groups][16].
struct GridTile {
  std::byte* bases;
  std::byte* min_bases;  // or null
  int8_t* factors;       // or null
  int8_t* min_factors;   // or null
};
// ops: as above.
void RepackGridTile(const StoredMatrix& stored, const Grid& grid, int64_t tile, std::byte* codes,
                    const GridTile& scales, const FloatOps* ops);

// out[n]: codes of row `row_in_tile` (0 - 15) of a packed tile; col and n are multiples of 32, or
// end at K.
void UnpackCodeRow(const std::byte* codes, int layout_bits, int64_t row_in_tile, int64_t col,
                   int64_t n, uint8_t* out);

// A tile of f32, f16 or bf16 values, element_bytes each.
void RepackFloatTile(const StoredMatrix& stored, int64_t element_bytes, int64_t tile,
                     std::byte* out, const FloatOps* ops);

}  // namespace tq

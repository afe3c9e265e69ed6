#include "backend/cpu/repack.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/turbo_quant.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr int64_t kRows = 16;
// Codes are unpacked this many columns at a time: a multiple of every unit and of every stored
// word.
constexpr int64_t kPieceColumns = 480;

uint32_t LoadFour(const void* p) {
  uint32_t four;
  std::memcpy(&four, p, 4);
  return four;
}

void StoreFour(std::byte* p, uint32_t four) { std::memcpy(p, &four, 4); }

// Four codes side by side in the bytes of a word; `c` points at 4 x (steps of the unit) codes.
void PackUnit(const uint8_t* c, int layout_bits, int64_t row, std::byte* unit) {
  const auto step = [c](int t) { return LoadFour(c + 4 * t); };
  if (layout_bits == 8) {
    StoreFour(unit + 4 * row, step(0));
    return;
  }
  if (layout_bits == 4) {
    StoreFour(unit + 4 * row, step(0) | step(1) << 4);
    return;
  }
  if (layout_bits == 2) {
    StoreFour(unit + 4 * row, step(0) | step(1) << 2 | step(2) << 4 | step(3) << 6);
    return;
  }
  constexpr uint32_t kTwoBits = 0x03030303;
  const uint32_t spread = step(6) | step(7) << 3;
  for (int v = 0; v < 3; ++v) {
    const uint32_t own = step(2 * v) | step(2 * v + 1) << 3;
    StoreFour(unit + 64 * v + 4 * row, own | (spread >> (2 * v) & kTwoBits) << 6);
  }
}

void UnpackUnit(const std::byte* unit, int layout_bits, int64_t row, uint8_t* out) {
  const auto put = [out](int t, uint32_t four) { std::memcpy(out + 4 * t, &four, 4); };
  if (layout_bits == 8) {
    put(0, LoadFour(unit + 4 * row));
    return;
  }
  if (layout_bits == 4) {
    const uint32_t word = LoadFour(unit + 4 * row);
    put(0, word & 0x0F0F0F0F);
    put(1, word >> 4 & 0x0F0F0F0F);
    return;
  }
  if (layout_bits == 2) {
    const uint32_t word = LoadFour(unit + 4 * row);
    for (int t = 0; t < 4; ++t) put(t, word >> (2 * t) & 0x03030303);
    return;
  }
  uint32_t spread = 0;
  for (int v = 0; v < 3; ++v) {
    const uint32_t word = LoadFour(unit + 64 * v + 4 * row);
    put(2 * v, word & 0x07070707);
    put(2 * v + 1, word >> 3 & 0x07070707);
    spread |= (word >> 6 & 0x03030303) << (2 * v);
  }
  put(6, spread & 0x07070707);
  put(7, spread >> 3 & 0x07070707);
}

int64_t UnitColumns(int layout_bits) { return layout_bits == 3 ? 32 : 32 / layout_bits; }
int64_t UnitBytes(int layout_bits) { return layout_bits == 3 ? 192 : 64; }

int64_t CodeBytes(int64_t cols, int layout_bits) {
  return cols / UnitColumns(layout_bits) * UnitBytes(layout_bits);
}

// Codes [begin, begin + n) of a row into its tile.
void PackCodes(const uint8_t* row_codes, int64_t begin, int64_t n, int layout_bits, int64_t row,
               std::byte* tile) {
  const int64_t unit_columns = UnitColumns(layout_bits);
  for (int64_t c = 0; c < n; c += unit_columns) {
    PackUnit(row_codes + c, layout_bits, row,
             tile + (begin + c) / unit_columns * UnitBytes(layout_bits));
  }
}

// Codes as they are stored in a word fill whole units.
bool KernelRepacks(const StoredMatrix& stored, int layout_bits) {
  switch (stored.codebook.size()) {
    case 2:
      return stored.cols % 32 == 0;
    case 8:
      return layout_bits == 3;
    default:
      return stored.codebook.size() != 3;
  }
}

void PackPlain(const StoredMatrix& stored, int layout_bits, int64_t tile, std::byte* codes) {
  const int64_t rows = std::min(kRows, stored.rows - tile * kRows);
  std::memset(codes, 0, static_cast<size_t>(CodeBytes(stored.cols, layout_bits)));
  std::array<uint8_t, kPieceColumns> piece;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t begin = 0; begin < stored.cols; begin += kPieceColumns) {
      const int64_t n = std::min(kPieceColumns, stored.cols - begin);
      TurboQuant::DecodeCodes(stored, tile * kRows + r, begin, n, piece.data());
      PackCodes(piece.data(), begin, n, layout_bits, r, codes);
    }
  }
}

void StoreBase(float value, DType type, int64_t index, std::byte* out) {
  if (type == DType::kF32) {
    std::memcpy(out + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = type == DType::kF16 ? F32ToF16(value) : F32ToBf16(value);
  std::memcpy(out + index * 2, &bits, 2);
}

// Codes that lie in a row as TurboQuant's do, or a byte each, and scales that are kept as they are.
bool KernelRepacks(const StoredMatrix& stored, const Grid& grid) {
  const int bits = stored.format.bits;
  return stored.format.codec == CodecId::kAffine && bits == LayoutBits(grid) && bits != 3;
}

// Scales [16 rows][groups] of kBytes each to [groups][16].
template <size_t kBytes>
void TransposeScales(const std::byte* rows, int64_t groups, std::byte* out) {
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(out + (g * kRows + r) * static_cast<int64_t>(kBytes),
                  rows + (r * groups + g) * static_cast<int64_t>(kBytes), kBytes);
    }
  }
}

// 16 rows of an affine matrix that KernelRepacks.
void RepackAffineTile(const StoredMatrix& stored, const Grid& grid, int64_t tile, std::byte* codes,
                      const GridTile& scales, const FloatOps& ops) {
  const int bits = stored.format.bits;
  const std::byte* rows = stored.data + tile * kRows * stored.row_bytes;
  if (bits == 8) {
    ops.transpose_rows(rows, stored.row_bytes, stored.cols / 4, codes);
  } else {
    ops.repack_codes(rows, stored.row_bytes, 1 << bits, stored.cols, codes);
  }
  const int64_t groups = stored.cols / grid.group;
  const auto transpose = grid.base_type == DType::kF32 ? TransposeScales<4> : TransposeScales<2>;
  const int64_t first = tile * kRows * groups * (grid.base_type == DType::kF32 ? 4 : 2);
  transpose(stored.scales + first, groups, scales.bases);
  if (grid.has_min) transpose(stored.biases + first, groups, scales.min_bases);
}

}  // namespace

int LayoutBits(int codebook_entries, int group) {
  if (codebook_entries <= 4) return 2;
  return codebook_entries <= 8 && group % 32 == 0 ? 3 : 4;
}

void RepackCodeTile(const StoredMatrix& stored, int layout_bits, int64_t tile, std::byte* codes,
                    uint16_t* scales, const FloatOps* ops) {
  const int64_t num_groups = stored.cols / stored.format.group;
  const int64_t rows = std::min(kRows, stored.rows - tile * kRows);
  if (ops != nullptr && rows == kRows && KernelRepacks(stored, layout_bits)) {
    ops->repack_codes(stored.data + tile * kRows * stored.row_bytes, stored.row_bytes,
                      static_cast<int>(stored.codebook.size()), stored.cols, codes);
  } else {
    PackPlain(stored, layout_bits, tile, codes);
  }
  if (rows < kRows) std::memset(scales, 0, static_cast<size_t>(num_groups * kRows) * 2);
  for (int64_t g = 0; g < num_groups; ++g) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = tile * kRows + r;
      std::memcpy(scales + g * kRows + r, stored.scales + (row * num_groups + g) * 2, 2);
    }
  }
}

int LayoutBits(const Grid& grid) {
  return grid.code_bits == 3 && grid.group % 32 != 0 ? 4 : grid.code_bits;
}

void RepackGridTile(const StoredMatrix& stored, const Grid& grid, int64_t tile, std::byte* codes,
                    const GridTile& scales, const FloatOps* ops) {
  if (ops != nullptr && (tile + 1) * kRows <= stored.rows && KernelRepacks(stored, grid)) {
    return RepackAffineTile(stored, grid, tile, codes, scales, *ops);
  }
  const int layout_bits = LayoutBits(grid);
  const int64_t groups = stored.cols / grid.group;
  const int64_t bases = groups / grid.base_groups;
  const auto base_bytes =
      static_cast<size_t>(bases * kRows * (grid.base_type == DType::kF32 ? 4 : 2));
  std::memset(codes, 0, static_cast<size_t>(CodeBytes(stored.cols, layout_bits)));
  std::memset(scales.bases, 0, base_bytes);
  if (grid.has_min) std::memset(scales.min_bases, 0, base_bytes);
  if (grid.has_factors()) std::memset(scales.factors, 0, static_cast<size_t>(groups * kRows));
  if (grid.has_factors() && grid.has_min) {
    std::memset(scales.min_factors, 0, static_cast<size_t>(groups * kRows));
  }
  GridRow row;
  const int64_t rows = std::min(kRows, stored.rows - tile * kRows);
  for (int64_t r = 0; r < rows; ++r) {
    DecodeGridRow(stored, grid, tile * kRows + r, row);
    PackCodes(row.codes.data(), 0, stored.cols, layout_bits, r, codes);
    for (int64_t b = 0; b < bases; ++b) {
      const auto i = static_cast<size_t>(b);
      StoreBase(row.bases[i], grid.base_type, b * kRows + r, scales.bases);
      if (grid.has_min) {
        StoreBase(row.min_bases[i], grid.base_type, b * kRows + r, scales.min_bases);
      }
    }
    if (!grid.has_factors()) continue;
    for (int64_t g = 0; g < groups; ++g) {
      const auto i = static_cast<size_t>(g);
      scales.factors[g * kRows + r] = row.factors[i];
      if (grid.has_min) scales.min_factors[g * kRows + r] = row.min_factors[i];
    }
  }
}

void UnpackCodeRow(const std::byte* codes, int layout_bits, int64_t row_in_tile, int64_t col,
                   int64_t n, uint8_t* out) {
  const int64_t unit_columns = UnitColumns(layout_bits);
  const std::byte* unit = codes + col / unit_columns * UnitBytes(layout_bits);
  for (int64_t c = 0; c < n; c += unit_columns, unit += UnitBytes(layout_bits)) {
    UnpackUnit(unit, layout_bits, row_in_tile, out + c);
  }
}

void RepackFloatTile(const StoredMatrix& stored, int64_t element_bytes, int64_t tile,
                     std::byte* out, const FloatOps* ops) {
  const int64_t row_bytes = stored.cols * element_bytes;
  const int64_t words = (row_bytes + 3) / 4;  // an odd 16-bit column gets a zero neighbour
  const int64_t rows = std::min(kRows, stored.rows - tile * kRows);
  const std::byte* in = stored.data + tile * kRows * stored.row_bytes;
  int64_t done = 0;
  if (ops != nullptr && rows == kRows) {
    done = row_bytes / 4;
    ops->transpose_rows(in, stored.row_bytes, done, out);
  }
  std::memset(out + done * 64, 0, static_cast<size_t>(words - done) * 64);
  for (int64_t i = done; i < words; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(out + i * 64 + r * 4, in + r * stored.row_bytes + i * 4,
                  static_cast<size_t>(std::min<int64_t>(4, row_bytes - i * 4)));
    }
  }
}

}  // namespace tq

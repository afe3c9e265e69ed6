// What the block formats of GGUF files share. Each format is one small header with kName,
// kBlockValues, kBlockBytes and DecodeBlock(bytes, values); this gives it DecodeRow. Formulas are
// exact until their last operation, so every value is rounded at most once and equals the format's
// reference bit for bit. kScalesAt says where in a block its f16 scales are (default: it has none):
// codes and small scales are finite whatever their bits, so these alone can be NaN or infinite.
#pragma once

#include <array>
#include <cstdint>

#include "codec/format.h"
#include "codec/grid.h"
#include "tensor/half.h"

namespace tq {

inline uint16_t LoadU16(const uint8_t* in) { return static_cast<uint16_t>(in[0] | in[1] << 8); }
inline uint32_t LoadU32(const uint8_t* in) {
  return static_cast<uint32_t>(LoadU16(in)) | static_cast<uint32_t>(LoadU16(in + 2)) << 16;
}
inline float LoadF16(const uint8_t* in) { return F16ToF32(LoadU16(in)); }
inline bool IsNonFiniteF16(uint16_t bits) { return (bits & 0x7C00) == 0x7C00; }

template <typename Block>
struct BlockCodec {
  static constexpr std::array<int, 0> kScalesAt = {};

  static void DecodeRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out) {
    const uint8_t* in = reinterpret_cast<const uint8_t*>(m.data + row * m.row_bytes) +
                        col / Block::kBlockValues * Block::kBlockBytes;
    for (int64_t i = 0; i < n; i += Block::kBlockValues, in += Block::kBlockBytes) {
      Block::DecodeBlock(in, out + i);
    }
  }
  static bool AllFinite(std::span<const std::byte> bytes) {
    const uint8_t* in = reinterpret_cast<const uint8_t*>(bytes.data());
    bool found = false;
    for (size_t i = 0; i + Block::kBlockBytes <= bytes.size(); i += Block::kBlockBytes) {
      for (const int at : Block::kScalesAt) found |= IsNonFiniteF16(LoadU16(in + i + at));
    }
    return !found;
  }
};

// A format on a grid of integers: kGrid and DecodeGrid(bytes, GridBlock) say everything, one base
// (or two, with min) per block.
template <typename Block>
struct GridCodec : BlockCodec<Block> {
  static void DecodeBlock(const uint8_t* in, float* out) {
    constexpr const Grid& kGrid = Block::kGrid;
    GridBlock block;
    block.factors.fill(1);
    block.min_factors.fill(1);
    Block::DecodeGrid(in, block);
    for (int i = 0; i < Block::kBlockValues; ++i) {
      const auto group = static_cast<size_t>(i / kGrid.group);
      const float scale = block.base * static_cast<float>(block.factors[group]);
      const float value =
          scale * static_cast<float>(kGrid.Integer(block.codes[static_cast<size_t>(i)]));
      const float min = block.min_base * static_cast<float>(block.min_factors[group]);
      out[i] = kGrid.has_min ? value + min : value;
    }
  }
};

// The grid of blocks with one scale, or one scale and one min.
constexpr Grid WithMin(Grid grid) {
  grid.has_min = true;
  return grid;
}
// The grid of blocks of which all groups share a base.
constexpr Grid WithFactors(Grid grid, int base_groups) {
  grid.base_groups = base_groups;
  return grid;
}

// Twice the values of a 4-bit float (e2m1); code 8 is +0. Stored scales are halved to match.
inline constexpr int8_t kE2M1Doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

constexpr Grid E2M1Grid(int group, DType base_type) {
  Grid grid = LinearGrid(group, 4, 0);
  for (size_t i = 0; i < 16; ++i) grid.integers[i] = kE2M1Doubled[i];
  grid.base_type = base_type;
  return grid;
}

// The 16 levels of the IQ4 formats.
inline constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace tq

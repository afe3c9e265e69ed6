#include "codec/grid.h"

#include <algorithm>

#include "codec/affine.h"
#include "codec/block_codec.h"
#include "codec/codec.h"
#include "codec/group_scales.h"

namespace tq {
namespace {

bool IsGroup(int group) { return group == 16 || group == 32 || group == 64 || group == 128; }

std::optional<Grid> AffineGrid(const StoredMatrix& m) {
  const bool is_float =
      m.scale_type == DType::kF16 || m.scale_type == DType::kBf16 || m.scale_type == DType::kF32;
  if (!is_float || !IsGroup(m.format.group) || m.block_rows != 1) return std::nullopt;
  const int bits = m.format.bits;
  const int first = m.biases != nullptr ? 0 : -(1 << (bits - 1));
  Grid grid = LinearGrid(m.format.group, bits <= 4 ? bits : 8, first);
  grid.has_min = m.biases != nullptr;
  grid.base_type = m.scale_type;
  return grid;
}

// mxfp4, nvfp4: twice the float is an integer, half the scale a float of few bits.
std::optional<Grid> Fp4Grid(const StoredMatrix& m) {
  const bool is_small = m.scale_type == DType::kE8M0 || m.scale_type == DType::kF8E4M3;
  if (!is_small || !IsGroup(m.format.group) || m.block_rows != 1) return std::nullopt;
  return E2M1Grid(m.format.group, m.global_scale == 1.0f ? DType::kBf16 : DType::kF32);
}

void DecodeAffineRow(const StoredMatrix& m, int64_t row, GridRow& out) {
  Affine::DecodeCodes(m, row, 0, m.cols, out.codes.data());
  for (size_t g = 0; g < out.bases.size(); ++g) {
    const int64_t index = ScaleIndex(m, row, static_cast<int64_t>(g) * m.format.group);
    out.bases[g] = LoadScale(m.scales, m.scale_type, index);
    if (m.biases != nullptr) out.min_bases[g] = LoadScale(m.biases, m.scale_type, index);
  }
}

void DecodeFp4Row(const StoredMatrix& m, int64_t row, GridRow& out) {
  const auto* codes = reinterpret_cast<const uint8_t*>(m.data + row * m.row_bytes);
  for (int64_t i = 0; i < m.cols; ++i) {
    out.codes[static_cast<size_t>(i)] = codes[i / 2] >> (i % 2 * 4) & 15;
  }
  for (size_t g = 0; g < out.bases.size(); ++g) {
    float scale = LoadScale(m.scales, m.scale_type,
                            ScaleIndex(m, row, static_cast<int64_t>(g) * m.format.group));
    if (m.global_scale != 1.0f) scale = scale / m.global_scale;
    out.bases[g] = 0.5f * scale;
  }
}

void DecodeBlocksRow(const StoredMatrix& m, const Grid& grid, const CodecInfo& codec, int64_t row,
                     GridRow& out) {
  const auto* in = reinterpret_cast<const uint8_t*>(m.data + row * m.row_bytes);
  const int groups = codec.block_values / grid.group;
  GridBlock block;
  for (int64_t col = 0; col < m.cols; col += codec.block_values, in += codec.block_bytes) {
    block.factors.fill(1);
    block.min_factors.fill(1);
    codec.decode_grid(in, block);
    const int64_t group = col / grid.group;
    std::copy_n(block.codes.begin(), codec.block_values, out.codes.begin() + col);
    std::copy_n(block.factors.begin(), groups, out.factors.begin() + group);
    std::copy_n(block.min_factors.begin(), groups, out.min_factors.begin() + group);
    // A block has one base.
    out.bases[static_cast<size_t>(col / codec.block_values)] = block.base;
    out.min_bases[static_cast<size_t>(col / codec.block_values)] = block.min_base;
  }
}

}  // namespace

std::optional<Grid> GridOf(const StoredMatrix& matrix) {
  std::optional<Grid> grid;
  if (matrix.format.codec == CodecId::kAffine) grid = AffineGrid(matrix);
  if (matrix.format.codec == CodecId::kFp4) grid = Fp4Grid(matrix);
  const CodecInfo& codec = GetCodec(matrix.format.codec);
  if (codec.grid != nullptr) grid = *codec.grid;
  if (grid && matrix.cols % grid->group != 0) return std::nullopt;
  return grid;
}

void DecodeGridRow(const StoredMatrix& matrix, const Grid& grid, int64_t row, GridRow& out) {
  const auto groups = static_cast<size_t>(matrix.cols / grid.group);
  const size_t bases = groups / static_cast<size_t>(grid.base_groups);
  out.codes.resize(static_cast<size_t>(matrix.cols));
  out.bases.assign(bases, 0.0f);
  out.min_bases.assign(bases, 0.0f);
  out.factors.assign(groups, 1);
  out.min_factors.assign(groups, 1);
  const CodecInfo& codec = GetCodec(matrix.format.codec);
  if (codec.decode_grid != nullptr) {
    DecodeBlocksRow(matrix, grid, codec, row, out);
  } else if (matrix.format.codec == CodecId::kAffine) {
    DecodeAffineRow(matrix, row, out);
  } else {
    DecodeFp4Row(matrix, row, out);
  }
}

}  // namespace tq

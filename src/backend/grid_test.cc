// Every grid says the same values as its format's DecodeRow.
#include "codec/grid.h"

#include <random>

#include <gtest/gtest.h>

#include "backend/test_matrix.h"
#include "codec/codec.h"

namespace tq {
namespace {

void ExpectSameValues(const TestMatrix& matrix, const std::string& name) {
  SCOPED_TRACE(name);
  const StoredMatrix& stored = matrix.stored();
  const std::optional<Grid> grid = GridOf(stored);
  ASSERT_TRUE(grid.has_value());
  GridRow row;
  std::vector<float> expected(static_cast<size_t>(stored.cols));
  for (int64_t r = 0; r < stored.rows; ++r) {
    DecodeGridRow(stored, *grid, r, row);
    DecodeRow(stored, r, 0, stored.cols, expected.data());
    for (int64_t k = 0; k < stored.cols; ++k) {
      const auto group = static_cast<size_t>(k / grid->group);
      const size_t base = group / static_cast<size_t>(grid->base_groups);
      const float scale = row.bases[base] * static_cast<float>(row.factors[group]);
      const int integer = grid->Integer(row.codes[static_cast<size_t>(k)]);
      float value = scale * static_cast<float>(integer);
      if (grid->has_min) {
        value = value + row.min_bases[base] * static_cast<float>(row.min_factors[group]);
      }
      ASSERT_EQ(value, expected[static_cast<size_t>(k)]) << "row " << r << " column " << k;
      ASSERT_LT(row.codes[static_cast<size_t>(k)], 1 << grid->code_bits);
    }
  }
}

TEST(Grid, BlockFormats) {
  int grids = 0;
  for (const CodecInfo& codec : AllCodecs()) {
    if (codec.grid == nullptr) continue;
    ++grids;
    EXPECT_EQ(codec.grid->group * codec.grid->base_groups, codec.block_values) << codec.name;
    ExpectSameValues(TestMatrix::Block(codec.id, 3, 512, 5), codec.name);
  }
  EXPECT_EQ(grids, 13);
}

TEST(Grid, AffineAndSmallFloats) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      for (const DType type : {DType::kF16, DType::kBf16, DType::kF32}) {
        for (const bool biases : {false, true}) {
          const Format format = {CodecId::kAffine, bits, group, Transform::kNone};
          ExpectSameValues(TestMatrix::Groups(format, type, biases, 1, 2, 384, 7),
                           FormatName(format));
        }
      }
    }
  }
  const Format fp4 = {CodecId::kFp4, 4, 32, Transform::kNone};
  ExpectSameValues(TestMatrix::Groups(fp4, DType::kE8M0, false, 1, 2, 384, 7), "mxfp4");
  const Format nvfp4 = {CodecId::kFp4, 4, 16, Transform::kNone};
  ExpectSameValues(TestMatrix::Groups(nvfp4, DType::kF8E4M3, false, 1, 2, 384, 7), "nvfp4");
}

TEST(Grid, OtherFormatsAreNone) {
  EXPECT_FALSE(GridOf(TestMatrix::Turbo(8, 64, Transform::kHadamard, 2, 128, 1).stored()));
  EXPECT_FALSE(GridOf(TestMatrix::Block(CodecId::kBf16, 2, 128, 1).stored()));
  EXPECT_FALSE(GridOf(TestMatrix::Block(CodecId::kTq1_0, 2, 256, 1).stored()));
  const Format blocks = {CodecId::kAffine, 4, 64, Transform::kNone};
  EXPECT_FALSE(GridOf(TestMatrix::Groups(blocks, DType::kF16, true, 2, 4, 128, 1).stored()));
}

}  // namespace
}  // namespace tq

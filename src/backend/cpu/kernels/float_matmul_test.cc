#include <gtest/gtest.h>

#include "backend/cpu/kernels/float_reference.h"

namespace tq {
namespace {

using reference::Random;

constexpr FloatType kTypes[] = {FloatType::kF32, FloatType::kF16, FloatType::kBf16};

std::vector<float> Expected(FloatType type, const std::vector<float>& w,
                            const std::vector<float>& x, const float* bias, int64_t rows,
                            int64_t cols, int64_t tokens) {
  std::vector<float> stored(w);
  for (float& value : stored) value = reference::Stored(type, value);
  std::vector<float> y;
  for (int64_t m = 0; m < tokens; ++m) {
    for (int64_t n = 0; n < rows; ++n) {
      const float dot = reference::Dot(stored.data() + n * cols, x.data() + m * cols, cols);
      y.push_back(bias != nullptr ? dot + bias[n] : dot);
    }
  }
  return y;
}

std::vector<float> Actual(const FloatOps& ops, FloatType type, const std::vector<float>& w,
                          const std::vector<float>& x, const float* bias, int64_t rows,
                          int64_t cols, int64_t tokens) {
  const reference::Tiles tiles = reference::Pack(type, w, rows, cols);
  std::vector<float> y(static_cast<size_t>(rows * tokens), -1.0f);
  const FloatMatMulArgs args = {.type = type,
                                .tiles = tiles.data(),
                                .num_rows = rows,
                                .num_cols = cols,
                                .x = x.data(),
                                .ldx = cols,
                                .num_tokens = tokens,
                                .bias = bias,
                                .y = y.data(),
                                .ldy = rows};
  const int64_t num_tiles = (rows + kTileRows - 1) / kTileRows;
  const int64_t middle = num_tiles / 3;  // two ranges, as two threads would
  ops.float_matmul(args, 0, middle);
  ops.float_matmul(args, middle, num_tiles);
  return y;
}

TEST(FloatMatMul, EveryIsaGivesTheBitsOfTheRule) {
  for (const Isa isa : DetectIsas()) {
    for (const FloatType type : kTypes) {
      for (const int64_t rows : {1, 16, 39}) {
        for (const int64_t cols : {1, 2, 31, 256, 257, 601}) {
          const std::vector<float> w = Random(1, rows * cols), x = Random(2, 64 * cols);
          const std::vector<float> bias = Random(3, rows);
          for (const int64_t tokens : {1, 2, 3, 4, 5, 8, 9, 13, 27, 50}) {
            const float* b = tokens % 2 == 0 ? bias.data() : nullptr;
            const std::vector<float> y =
                Actual(GetFloatOps(isa), type, w, x, b, rows, cols, tokens);
            EXPECT_EQ(reference::FirstDifference(y, Expected(type, w, x, b, rows, cols, tokens)),
                      -1)
                << IsaName(isa) << " type " << int(type) << " " << rows << " x " << cols << ", "
                << tokens << " tokens";
          }
        }
      }
    }
  }
}

// Products that underflow leave -0 in a chain; infinities must not reach a skipped odd column.
TEST(FloatMatMul, SignedZerosAndMissingOddColumns) {
  const int64_t rows = 16, cols = 5, tokens = 13;
  std::vector<float> w(rows * cols, -1e-30f), x(tokens * cols + 1, 1e-30f);
  x.back() = std::numeric_limits<float>::infinity();
  for (const Isa isa : DetectIsas()) {
    for (const FloatType type : {FloatType::kF32, FloatType::kBf16, FloatType::kF16}) {
      for (const int64_t m : {int64_t{1}, tokens}) {
        std::vector<float> tail(x.end() - 1 - m * cols, x.end());
        const std::vector<float> y =
            Actual(GetFloatOps(isa), type, w, tail, nullptr, rows, cols, m);
        EXPECT_EQ(reference::FirstDifference(y, Expected(type, w, tail, nullptr, rows, cols, m)),
                  -1)
            << IsaName(isa) << " " << int(type);
      }
    }
  }
}

TEST(FloatMatMul, HalfPrecisionSubnormalsAreKept) {
  const int64_t rows = 16, cols = 64;
  const std::vector<float> w = Random(4, rows * cols, 1e-6f), x = Random(5, cols);
  for (const Isa isa : DetectIsas()) {
    for (const int64_t tokens : {1, 16}) {
      std::vector<float> all;
      for (int64_t t = 0; t < tokens; ++t) all.insert(all.end(), x.begin(), x.end());
      const std::vector<float> y =
          Actual(GetFloatOps(isa), FloatType::kF16, w, all, nullptr, rows, cols, tokens);
      EXPECT_EQ(reference::FirstDifference(
                    y, Expected(FloatType::kF16, w, all, nullptr, rows, cols, tokens)),
                -1)
          << IsaName(isa);
      EXPECT_NE(y[0], 0.0f);
    }
  }
}

TEST(FloatMatMul, CloseToDoublePrecision) {
  const int64_t rows = 32, cols = 4096;
  const std::vector<float> w = Random(6, rows * cols), x = Random(7, cols);
  for (const Isa isa : DetectIsas()) {
    const std::vector<float> y =
        Actual(GetFloatOps(isa), FloatType::kF32, w, x, nullptr, rows, cols, 1);
    for (int64_t n = 0; n < rows; ++n) {
      double sum = 0.0, magnitude = 0.0;
      for (int64_t k = 0; k < cols; ++k) {
        sum += double{w[n * cols + k]} * x[k];
        magnitude += std::fabs(double{w[n * cols + k]} * x[k]);
      }
      EXPECT_NEAR(y[n], sum, 2e-7 * magnitude);
    }
  }
}

TEST(Transpose16, RowsToTile) {
  const std::vector<float> rows = Random(8, 16 * 40);
  for (const Isa isa : DetectIsas()) {
    for (const int64_t n : {1, 4, 32, 39}) {
      std::vector<float> tile(static_cast<size_t>(n * 16));
      GetFloatOps(isa).transpose16(rows.data(), 40, n, tile.data());
      for (int64_t i = 0; i < n * 16; ++i) ASSERT_EQ(tile[i], rows[i % 16 * 40 + i / 16]);
    }
  }
}

TEST(EmbedRow, ReadsAnyRowOfATile16Matrix) {
  const int64_t rows = 20, cols = 33;
  const std::vector<float> w = Random(9, rows * cols);
  for (const Isa isa : DetectIsas()) {
    for (const FloatType type : kTypes) {
      const reference::Tiles tiles = reference::Pack(type, w, rows, cols);
      for (const int64_t row : {0, 15, 16, 19}) {
        std::vector<float> out(cols);
        GetFloatOps(isa).embed_row(type, tiles.data(), cols, row, 1.7f, out.data());
        for (int64_t k = 0; k < cols; ++k) {
          ASSERT_EQ(out[k], reference::Stored(type, w[row * cols + k]) * 1.7f);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tq

// The integer leaf files against a scalar model of their contract, and the tile16 layout itself.
#include "backend/cpu/kernels/int_matmul.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/repack.h"
#include "backend/test_matrix.h"

namespace tq {
namespace {

struct Tiles {
  std::vector<std::byte> codes;
  std::vector<uint16_t> scales;
  int layout_bits;
};

int64_t NumTiles(const StoredMatrix& stored) { return (stored.rows + 15) / 16; }

Tiles Repack(const StoredMatrix& stored, const FloatOps* ops = nullptr) {
  Tiles tiles;
  tiles.layout_bits = LayoutBits(static_cast<int>(stored.codebook.size()), stored.format.group);
  const int64_t code_bytes = CodeTileBytes(tiles.layout_bits, stored.cols);
  const int64_t num_scales = stored.cols / stored.format.group * 16;
  tiles.codes.resize(static_cast<size_t>(NumTiles(stored) * code_bytes), std::byte{0xAA});
  tiles.scales.resize(static_cast<size_t>(NumTiles(stored) * num_scales), uint16_t{0x7E00});
  for (int64_t tile = 0; tile < NumTiles(stored); ++tile) {
    RepackCodeTile(stored, tiles.layout_bits, tile, tiles.codes.data() + tile * code_bytes,
                   tiles.scales.data() + tile * num_scales, ops);
  }
  return tiles;
}

TEST(Repack, LayoutBitsFollowCodebookAndGroup) {
  EXPECT_EQ(LayoutBits(2, 64), 2);
  EXPECT_EQ(LayoutBits(3, 16), 2);
  EXPECT_EQ(LayoutBits(4, 128), 2);
  EXPECT_EQ(LayoutBits(8, 32), 3);
  EXPECT_EQ(LayoutBits(8, 16), 4);
  EXPECT_EQ(LayoutBits(16, 64), 4);
}

// Bits in memory are exactly 2, 3 or 4 per weight.
TEST(Repack, SizeIsExact) {
  for (const int bits : {2, 3, 4})
    EXPECT_EQ(CodeTileBytes(bits, 4096) * 8, int64_t{16} * 4096 * bits);
}

TEST(Repack, EveryCodeComesBack) {
  for (const int entries : {2, 3, 4, 8, 16}) {
    for (const int group : {16, 64}) {
      const TestMatrix matrix = TestMatrix::Turbo(entries, group, Transform::kNone, 21, 1088, 1);
      const StoredMatrix& stored = matrix.stored();
      const Tiles tiles = Repack(stored);
      std::vector<uint8_t> expected(1088);
      std::vector<uint8_t> found(1088);
      for (int64_t row = 0; row < 32; ++row) {
        const std::byte* codes =
            tiles.codes.data() + row / 16 * CodeTileBytes(tiles.layout_bits, 1088);
        UnpackCodeRow(codes, tiles.layout_bits, row % 16, 0, 1088, found.data());
        std::fill(expected.begin(), expected.end(), uint8_t{0});
        if (row < stored.rows) TurboQuant::DecodeCodes(stored, row, 0, 1088, expected.data());
        ASSERT_EQ(found, expected) << "entries " << entries << " row " << row;
        UnpackCodeRow(codes, tiles.layout_bits, row % 16, 512, 64, found.data());
        ASSERT_TRUE(std::equal(found.begin(), found.begin() + 64, expected.begin() + 512));
      }
    }
  }
}

// Full tiles by the kernels, whatever byte the rows begin at.
TEST(Repack, EveryIsaWritesTheBytesOfThePlainCode) {
  for (const Isa isa : DetectIsas()) {
    for (const int entries : {2, 3, 4, 8, 16}) {
      for (const int group : {16, 32, 64}) {
        for (const int64_t cols : {64, 192, 320, 1088, 1216}) {
          const TestMatrix matrix =
              TestMatrix::Turbo(entries, group, Transform::kNone, 37, cols, 7);
          StoredMatrix stored = matrix.stored();
          std::vector<std::byte> moved(static_cast<size_t>(stored.rows * stored.row_bytes) + 1);
          std::copy_n(stored.data, moved.size() - 1, moved.data() + 1);
          stored.data = moved.data() + 1;
          const Tiles expected = Repack(stored);
          const Tiles found = Repack(stored, &GetFloatOps(isa));
          ASSERT_EQ(found.codes, expected.codes)
              << IsaName(isa) << " entries " << entries << " group " << group << " cols " << cols;
          ASSERT_EQ(found.scales, expected.scales);
        }
      }
    }
  }
}

TEST(Repack, EveryIsaWritesTheFloatTilesOfThePlainCode) {
  for (const Isa isa : DetectIsas()) {
    for (const CodecId codec : {CodecId::kF32, CodecId::kF16, CodecId::kBf16}) {
      for (const int64_t cols : {1, 2, 7, 64, 257}) {
        const TestMatrix matrix = TestMatrix::Block(codec, 37, cols, 7);
        const FloatType type = codec == CodecId::kF32 ? FloatType::kF32 : FloatType::kBf16;
        const auto bytes = static_cast<size_t>(FloatTileBytes(type, cols));
        std::vector<std::byte> expected(bytes, std::byte{0xAA});
        std::vector<std::byte> found(bytes, std::byte{0x55});
        for (int64_t tile = 0; tile < 3; ++tile) {
          const int64_t element = codec == CodecId::kF32 ? 4 : 2;
          RepackFloatTile(matrix.stored(), element, tile, expected.data(), nullptr);
          RepackFloatTile(matrix.stored(), element, tile, found.data(), &GetFloatOps(isa));
          ASSERT_EQ(found, expected) << IsaName(isa) << " cols " << cols << " tile " << tile;
        }
      }
    }
  }
}

// The picture of repack.h, byte by byte.
TEST(Repack, ThreeBitUnitIsAsDrawn) {
  TestMatrix matrix = TestMatrix::Turbo(8, 32, Transform::kNone, 16, 32, 7);
  const Tiles tiles = Repack(matrix.stored());
  std::vector<uint8_t> c(32);
  for (int r = 0; r < 16; ++r) {
    TurboQuant::DecodeCodes(matrix.stored(), r, 0, 32, c.data());
    for (int j = 0; j < 4; ++j) {
      const auto at = [&](int t) { return static_cast<unsigned>(c[4 * t + j]); };
      const unsigned spread = at(6) | at(7) << 3;
      for (int v = 0; v < 3; ++v) {
        const unsigned expected = at(2 * v) | at(2 * v + 1) << 3 | (spread >> (2 * v) & 3u) << 6;
        EXPECT_EQ(static_cast<unsigned>(tiles.codes[v * 64 + 4 * r + j]), expected);
      }
    }
  }
}

class IntOpsTest : public testing::TestWithParam<Isa> {};

// All passes of up to 8 tokens, with extreme q, against the rule of docs/numerics.md.
TEST_P(IntOpsTest, MatchesTheScalarRule) {
  const IntOps& ops = GetIntOps(GetParam());
  for (const int entries : {3, 4, 8, 16}) {
    for (const int group : {16, 32, 64, 128}) {
      for (const bool extreme : {false, true}) {
        constexpr int64_t kRows = 37;
        constexpr int64_t kCols = 640;
        constexpr int64_t kTokens = 13;
        const int64_t block = group == 32 ? 32 : 256;
        const TestMatrix matrix =
            TestMatrix::Turbo(entries, group, Transform::kNone, kRows, kCols, 11);
        const Tiles tiles = Repack(matrix.stored());
        IntegerCodebook codebook = FitIntegerCodebook(matrix.stored().codebook);
        if (extreme) {
          for (int i = 0; i < entries; ++i) codebook.integers[i] = i == 0 ? -63 : 63;
        }
        const int smallest = *std::min_element(codebook.integers.begin(), codebook.integers.end());
        const int64_t num_blocks = (kCols + block - 1) / block;
        const int64_t num_groups = kCols / group;

        std::mt19937 random(3);
        std::vector<int8_t> q(kTokens * kCols);
        for (int8_t& value : q) {
          value = static_cast<int8_t>(extreme ? (random() % 4 == 0 ? -127 : 127)
                                              : static_cast<int>(random() % 255) - 127);
        }
        const std::vector<float> sx = RandomFloats(kTokens * num_blocks, 4);
        const std::vector<float> bias = RandomFloats(kRows, 5);
        std::vector<int8_t> packed(q.size());
        std::vector<float> packed_sx(sx.size());
        std::vector<int32_t> corr(static_cast<size_t>(kTokens * num_groups));
        for (int64_t t = 0; t < kTokens; ++t) {
          const int64_t first = t / 8 * 8;
          const int64_t m = std::min<int64_t>(8, kTokens - first);
          for (int64_t k = 0; k < kCols; ++k) {
            packed[first * kCols + k / 4 * 4 * m + (t - first) * 4 + k % 4] = q[t * kCols + k];
          }
          for (int64_t b = 0; b < num_blocks; ++b)
            packed_sx[first * num_blocks + b * m + t - first] = sx[t * num_blocks + b];
          for (int64_t g = 0; g < num_groups; ++g) {
            int32_t sum = 0;
            for (int64_t k = g * group; k < (g + 1) * group; ++k) sum += q[t * kCols + k];
            corr[first * num_groups + g * m + t - first] = ops.unsigned_table ? smallest * sum : 0;
          }
        }
        constexpr int64_t kStride = 40;
        std::vector<float> y(kTokens * kStride, -5.0f);
        const IntMatMulArgs args{.codes = tiles.codes.data(),
                                 .scales = tiles.scales.data(),
                                 .grid = nullptr,
                                 .integers = codebook.integers.data(),
                                 .step = 0.25f,
                                 .layout_bits = tiles.layout_bits,
                                 .group = group,
                                 .num_rows = kRows,
                                 .num_cols = kCols,
                                 .block = block,
                                 .q = packed.data(),
                                 .sx = packed_sx.data(),
                                 .corr = corr.data(),
                                 .qsum = nullptr,
                                 .scale_work = nullptr,
                                 .num_tokens = kTokens,
                                 .bias = bias.data(),
                                 .y = y.data(),
                                 .ldy = kStride};
        ops.matmul(args, 0, 1);
        ops.matmul(args, 1, 3);

        std::vector<uint8_t> codes(kCols);
        for (int64_t n = 0; n < kRows; ++n) {
          TurboQuant::DecodeCodes(matrix.stored(), n, 0, kCols, codes.data());
          for (int64_t t = 0; t < kTokens; ++t) {
            float expected = 0;
            for (int64_t b = 0; b < num_blocks; ++b) {
              float p = 0;
              for (int64_t g = b * block / group; g < std::min((b + 1) * block, kCols) / group;
                   ++g) {
                int32_t sum = 0;
                for (int64_t k = g * group; k < (g + 1) * group; ++k) {
                  sum += int32_t{codebook.integers[codes[k]]} * q[t * kCols + k];
                }
                uint16_t d;
                std::memcpy(&d, matrix.stored().scales + (n * num_groups + g) * 2, 2);
                p = std::fma(F16ToF32(d), static_cast<float>(sum), p);
              }
              expected = std::fma(sx[t * num_blocks + b], p, expected);
            }
            expected = expected * 0.25f + bias[n];
            ASSERT_EQ(y[t * kStride + n], expected)
                << "entries " << entries << " group " << group << " row " << n << " token " << t;
          }
        }
        for (int64_t t = 0; t < kTokens; ++t) {
          for (int64_t n = kRows; n < kStride; ++n)
            ASSERT_EQ(y[t * kStride + n], -5.0f) << "wrote beyond its rows";
        }
      }
    }
  }
}

TEST_P(IntOpsTest, DecodesTilesExactly) {
  const IntOps& ops = GetIntOps(GetParam());
  for (const int entries : {2, 3, 4, 8, 16}) {
    for (const int group : {16, 32, 128}) {
      const TestMatrix matrix = TestMatrix::Turbo(entries, group, Transform::kNone, 16, 384, 13);
      const Tiles tiles = Repack(matrix.stored());
      std::array<float, 16> codebook{};
      std::copy(matrix.stored().codebook.begin(), matrix.stored().codebook.end(), codebook.begin());
      std::vector<float> tile(384 * 16);
      ops.decode_tile(tiles.codes.data(), tiles.scales.data(), codebook.data(), tiles.layout_bits,
                      group, 384, tile.data());
      std::vector<float> row(384);
      for (int64_t r = 0; r < 16; ++r) {
        TurboQuant::DecodeRow(matrix.stored(), r, 0, 384, row.data());
        for (int64_t k = 0; k < 384; ++k)
          ASSERT_EQ(tile[k * 16 + r], row[k]) << "entries " << entries << " column " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, IntOpsTest, testing::ValuesIn(DetectIsas()),
                         [](const auto& isa) { return std::string(IsaName(isa.param)); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(IntOpsTest);

TEST(Isa, NamesGoBothWays) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx, Isa::kNeon}) {
    EXPECT_EQ(IsaFromName(IsaName(isa)), isa);
  }
  EXPECT_EQ(IsaFromName("sse9"), std::nullopt);
}

}  // namespace
}  // namespace tq

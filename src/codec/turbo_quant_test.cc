#include "codec/turbo_quant.h"

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "codec/test_tensors.h"
#include "codec/turbo_quant_encode.h"

namespace tq {
namespace {

constexpr int kEntries[] = {2, 3, 4, 8, 16};

int NominalBits(int entries) { return entries == 3 ? 2 : std::countr_zero(unsigned(entries)); }

TEST(TurboQuant, WordCounts) {
  const struct {
    int64_t cols;
    int64_t words[4];  // 2-bit, 3-bit, 4-bit, trit
  } rows[] = {{64, {4, 7, 8, 4}},
              {2880, {180, 288, 360, 144}},
              {5120, {320, 512, 640, 256}},
              {17408, {1088, 1741, 2176, 871}}};
  for (const auto& row : rows) {
    EXPECT_EQ(TurboQuantWords(4, row.cols), row.words[0]);
    EXPECT_EQ(TurboQuantWords(8, row.cols), row.words[1]);
    EXPECT_EQ(TurboQuantWords(16, row.cols), row.words[2]);
    EXPECT_EQ(TurboQuantWords(3, row.cols), row.words[3]);
  }
  EXPECT_EQ(TurboQuantWords(2, 33), 2);
}

TEST(TurboQuant, SlotLayout) {
  const std::vector<uint8_t> codes = {1, 2, 0, 2, 1};
  uint32_t word = 0;
  PackTurboQuantCodes(4, codes, &word);
  EXPECT_EQ(word, 1u | 2u << 2 | 2u << 6 | 1u << 8);
  PackTurboQuantCodes(8, codes, &word);
  EXPECT_EQ(word, 1u | 2u << 3 | 2u << 9 | 1u << 12);
  PackTurboQuantCodes(16, codes, &word);
  EXPECT_EQ(word, 1u | 2u << 4 | 2u << 12 | 1u << 16);
  PackTurboQuantCodes(3, codes, &word);
  EXPECT_EQ(word, 1u + 2 * 3 + 2 * 27 + 1 * 81);
  PackTurboQuantCodes(2, std::vector<uint8_t>{1, 0, 1}, &word);
  EXPECT_EQ(word, 5u);
  PackTurboQuantCodes(3, std::vector<uint8_t>(20, 2), &word);
  EXPECT_EQ(word, 3486784400u);  // 3^20 - 1
  PackTurboQuantCodes(8, std::vector<uint8_t>(10, 7), &word);
  EXPECT_EQ(word, 0x3FFFFFFFu);
}

// A random matrix whose words start at an odd address.
struct RandomMatrix {
  RandomMatrix(int entries, int64_t rows, int64_t cols, int group, uint32_t seed) {
    std::mt19937 generator(seed);
    const int64_t words = TurboQuantWords(entries, cols);
    bytes.resize(static_cast<size_t>(1 + rows * words * 4));
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<uint8_t> row(static_cast<size_t>(cols));
      for (uint8_t& code : row) code = static_cast<uint8_t>(generator() % entries);
      std::vector<uint32_t> packed(static_cast<size_t>(words));
      PackTurboQuantCodes(entries, row, packed.data());
      std::memcpy(&bytes[static_cast<size_t>(1 + r * words * 4)], packed.data(), packed.size() * 4);
      codes.push_back(row);
    }
    for (int64_t i = 0; i < rows * cols / group; ++i) {
      const uint16_t scale = static_cast<uint16_t>(0x2000 + generator() % 0x2000);
      scale_bytes.push_back(static_cast<std::byte>(scale & 0xFF));
      scale_bytes.push_back(static_cast<std::byte>(scale >> 8));
      scales.push_back(F16ToF32(scale));
    }
    codebook = LloydMaxCodebook(entries).stored;
    matrix.format = {CodecId::kTurboQuant, NominalBits(entries), group, Transform::kNone};
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.data = bytes.data() + 1;
    matrix.row_bytes = words * 4;
    matrix.scales = scale_bytes.data();
    matrix.codebook = codebook;
  }

  std::vector<std::byte> bytes;
  std::vector<std::byte> scale_bytes;
  std::vector<std::vector<uint8_t>> codes;
  std::vector<float> scales;
  std::vector<float> codebook;
  StoredMatrix matrix;
};

TEST(TurboQuant, PackedCodesComeBack) {
  for (const int entries : kEntries) {
    for (const int64_t cols : {16, 48, 64, 112, 160, 320}) {
      const RandomMatrix random(entries, 3, cols, 16, 5);
      for (int64_t row = 0; row < 3; ++row) {
        std::vector<uint8_t> codes(static_cast<size_t>(cols));
        TurboQuant::DecodeCodes(random.matrix, row, 0, cols, codes.data());
        EXPECT_EQ(codes, random.codes[static_cast<size_t>(row)]) << entries << " " << cols;
      }
    }
  }
}

TEST(TurboQuant, PartialRangesEqualTheWholeRow) {
  std::mt19937 generator(17);
  for (const int entries : kEntries) {
    const int64_t cols = 576;
    const RandomMatrix random(entries, 2, cols, 32, 9);
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<float> whole(static_cast<size_t>(cols));
      DecodeRow(random.matrix, row, 0, cols, whole.data());
      for (int64_t i = 0; i < cols; ++i) {
        const float scale = random.scales[static_cast<size_t>((row * cols + i) / 32)];
        const uint8_t code = random.codes[static_cast<size_t>(row)][static_cast<size_t>(i)];
        ASSERT_EQ(whole[static_cast<size_t>(i)], random.codebook[code] * scale);
      }
      for (int trial = 0; trial < 200; ++trial) {
        const int64_t col = generator() % cols;
        const int64_t n = generator() % (cols - col + 1);
        std::vector<float> part(static_cast<size_t>(n) + 1, -77.0f);
        DecodeRow(random.matrix, row, col, n, part.data());
        ASSERT_EQ(part.back(), -77.0f);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(part[static_cast<size_t>(i)], whole[static_cast<size_t>(col + i)]);
        }
      }
    }
  }
}

TEST(TurboQuant, AnyWordDecodesInsideTheCodebook) {
  for (const uint32_t word : {0xFFFFFFFFu, 3486784401u, 0xC0000000u, 0x80000000u}) {
    RandomMatrix random(3, 1, 16, 16, 1);
    std::memcpy(random.bytes.data() + 1, &word, 4);
    uint8_t codes[16];
    TurboQuant::DecodeCodes(random.matrix, 0, 0, 16, codes);
    for (const uint8_t code : codes) EXPECT_LT(code, 3);
  }
}

TEST(TurboQuant, StoredBytesCountEveryTensor) {
  RandomMatrix random(8, 4, 64, 32, 3);
  EXPECT_EQ(random.matrix.stored_bytes(), 4 * 7 * 4 + 4 * 2 * 2 + 8 * 2);
  const std::vector<float> signs(64, 1.0f);
  random.matrix.signs = signs;
  EXPECT_EQ(random.matrix.stored_bytes(), 4 * 7 * 4 + 4 * 2 * 2 + 8 * 2 + 64 * 2);
}

TEST(LloydMax, TablesHaveTheReferenceBits) {
  const TestTensors vectors(TQ_TEST_DATA "/turboquant/vectors.safetensors");
  for (const int entries : kEntries) {
    const std::string base =
        "codebook/" + (entries == 3 ? std::string("trit") : std::to_string(NominalBits(entries)));
    const LloydMaxTable& table = LloydMaxCodebook(entries);
    EXPECT_EQ(table.centroids, vectors[base + "/f32"].Floats()) << base;
    EXPECT_EQ(table.stored, vectors[base + "/f16"].Floats()) << base;
    EXPECT_EQ(table.boundaries, vectors[base + "/boundaries"].Floats()) << base;
  }
}

TEST(LloydMax, StoredBitPatterns) {
  const struct {
    int entries;
    std::vector<uint16_t> positive;
  } rows[] = {{2, {0x3a62}},
              {3, {0x0000, 0x3ce5}},
              {4, {0x373f, 0x3e0b}},
              {8, {0x33d8, 0x3a0c, 0x3d60, 0x404e}},
              {16, {0x301d, 0x3637, 0x3942, 0x3b8b, 0x3d07, 0x3e7a, 0x4024, 0x4177}}};
  for (const auto& row : rows) {
    const std::vector<float>& stored = LloydMaxCodebook(row.entries).stored;
    for (size_t i = 0; i < row.positive.size(); ++i) {
      EXPECT_EQ(F32ToF16(stored[row.entries / 2 + i]), row.positive[i]);
      EXPECT_EQ(stored[row.entries / 2 + i], -stored[(row.entries - 1) / 2 - i]);
    }
  }
}

// The reference's un-rotated rows: transposed Hadamard, then signs.
TEST(TurboQuant, UnrotatedRowsOfTheReference) {
  const TestTensors vectors(TQ_TEST_DATA "/turboquant/vectors.safetensors");
  int compared = 0;
  for (const auto& [name, dequant] : vectors.all()) {
    const auto parts = SplitName(name);
    if (parts.back() != "dequant") continue;
    const std::string base = name.substr(0, name.size() - parts.back().size());
    const int64_t cols = dequant.cols();
    const int entries = parts[3] == "trit" ? 3 : 1 << std::stoi(parts[3]);
    StoredMatrix matrix;
    matrix.format = {CodecId::kTurboQuant, NominalBits(entries), std::stoi(parts[2].substr(1)),
                     Transform::kHadamard};
    matrix.rows = 1;
    matrix.cols = cols;
    matrix.data = reinterpret_cast<const std::byte*>(vectors[base + "weight"].bytes.data());
    matrix.row_bytes = TurboQuantWords(entries, cols) * 4;
    matrix.scales = reinterpret_cast<const std::byte*>(vectors[base + "scales"].bytes.data());
    matrix.codebook = LloydMaxCodebook(entries).stored;
    std::vector<float> row(static_cast<size_t>(cols));
    DecodeRow(matrix, 0, 0, cols, row.data());
    HadamardInverse(row);
    const std::vector<float> signs = TurboQuantSigns(42, cols);
    const std::vector<float> expected = dequant.Floats();
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(row[i] * signs[i], expected[i], 2e-6) << name << " at " << i;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 100);
}

}  // namespace
}  // namespace tq

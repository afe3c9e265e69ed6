#include "codec/qjl.h"

#include <cmath>

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "codec/test_tensors.h"
#include "codec/turbo_quant.h"

namespace tq {
namespace {

// Vectors of the reference: 3-bit rows of group 32 (seed 9), their residual's bits and lengths.
TEST(Qjl, PublishedVectors) {
  const TestTensors vectors(TQ_TEST_DATA "/turboquant/vectors.safetensors");
  for (const int cols : {64, 96, 160, 352}) {
    const std::string width = std::to_string(cols);
    const std::string at = "qjl/" + width + "/";
    const std::vector<float> signs = QjlSigns(cols);
    EXPECT_EQ(signs, vectors["qjl_signs/" + width].Floats());
    const std::vector<float> weights = vectors[at + "w"].Floats();
    const std::vector<uint32_t> words = vectors[at + "weight"].As<uint32_t>();
    const std::vector<uint16_t> scales = vectors[at + "scales"].As<uint16_t>();
    const std::vector<uint32_t> want_bits = vectors[at + "qjl_packed"].As<uint32_t>();
    const std::vector<uint16_t> want_norms = vectors[at + "qjl_norms"].As<uint16_t>();
    const std::vector<float> rotation = TurboQuantSigns(9, cols);
    StoredMatrix codes;
    codes.format = {.codec = CodecId::kTurboQuant, .bits = 3, .group = 32};
    codes.rows = vectors[at + "weight"].rows();
    codes.cols = cols;
    codes.data = std::as_bytes(std::span(words)).data();
    codes.row_bytes = TurboQuantWords(8, cols) * 4;
    codes.scales = std::as_bytes(std::span(scales)).data();
    codes.codebook = LloydMaxCodebook(8).stored;
    const int64_t bit_words = (cols + 31) / 32;
    for (int64_t row = 0; row < codes.rows; ++row) {
      std::vector<float> residual(weights.begin() + row * cols, weights.begin() + (row + 1) * cols);
      for (int c = 0; c < cols; ++c) residual[c] *= rotation[c];
      HadamardForward(residual);
      std::vector<float> decoded(static_cast<size_t>(cols));
      DecodeRow(codes, row, 0, cols, decoded.data());
      for (int c = 0; c < cols; ++c) residual[c] -= F16ToF32(F32ToF16(decoded[c]));
      std::vector<uint32_t> bits(static_cast<size_t>(bit_words));
      const float norm = EncodeQjlRow(residual, signs, bits.data());
      EXPECT_EQ(F32ToF16(norm), want_norms[row]) << width << " " << row;
      EXPECT_EQ(bits, std::vector<uint32_t>(want_bits.begin() + row * bit_words,
                                            want_bits.begin() + (row + 1) * bit_words))
          << width << " " << row;
    }
  }
}

TEST(Qjl, NothingLeftGivesOnesAndNoLength) {
  std::vector<float> residual(40, 0.0f);
  const std::vector<float> signs(40, 1.0f);
  uint32_t words[2] = {7, 7};
  EXPECT_EQ(EncodeQjlRow(residual, signs, words), 0.0f);
  EXPECT_EQ(words[0], 0xFFFFFFFFu);
  EXPECT_EQ(words[1], 0xFFu);  // padding is zero
}

}  // namespace
}  // namespace tq

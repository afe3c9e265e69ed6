#include "codec/affine_encode.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace tq {
namespace {

struct Encoded {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  std::vector<float> biases;
  bool finite = false;
};

Encoded Encode(const AffineSpec& spec, const std::vector<float>& row) {
  Encoded out;
  const auto cols = static_cast<int64_t>(row.size());
  out.codes.assign(static_cast<size_t>(AffineRowBytes(spec.bits, cols)), 0xAA);
  out.scales.resize(static_cast<size_t>(cols / spec.group));
  out.biases.resize(out.scales.size());
  out.finite = EncodeAffineRow(spec, row, out.codes.data(), out.scales.data(), out.biases.data());
  return out;
}

std::vector<float> Decode(const AffineSpec& spec, const Encoded& encoded, int64_t cols) {
  StoredMatrix matrix;
  matrix.format = {.codec = CodecId::kAffine, .bits = spec.bits, .group = spec.group};
  matrix.rows = 1;
  matrix.cols = cols;
  matrix.data = std::as_bytes(std::span(encoded.codes)).data();
  matrix.row_bytes = static_cast<int64_t>(encoded.codes.size());
  matrix.scales = std::as_bytes(std::span(encoded.scales)).data();
  matrix.biases = std::as_bytes(std::span(encoded.biases)).data();
  matrix.scale_type = DType::kF32;
  std::vector<float> out(static_cast<size_t>(cols));
  DecodeRow(matrix, 0, 0, cols, out.data());
  return out;
}

TEST(AffineEncode, ReadsBackWithinHalfAStep) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      std::vector<float> row(384);
      for (float& x : row) x = normal(random) + 0.5f;
      const AffineSpec spec = {bits, group};
      const Encoded encoded = Encode(spec, row);
      ASSERT_TRUE(encoded.finite);
      const std::vector<float> back = Decode(spec, encoded, 384);
      for (size_t i = 0; i < row.size(); ++i) {
        // Zero has a whole code, which moves the far end by up to a step.
        const float step = std::fabs(encoded.scales[i / static_cast<size_t>(group)]);
        EXPECT_LE(std::fabs(back[i] - row[i]), 1.01f * step) << bits << " " << group << " " << i;
      }
    }
  }
}

TEST(AffineEncode, TheFartherEndAndZeroAreExact) {
  std::vector<float> row(32, 0.0f);
  for (int i = 0; i < 32; ++i) row[i] = static_cast<float>(i) / 10 - 1;
  row[3] = 0;
  row[31] = 2.125f;
  const Encoded encoded = Encode({4, 32}, row);
  EXPECT_LT(encoded.scales[0], 0);  // from the high end down
  EXPECT_EQ(encoded.biases[0], 2.125f);
  const std::vector<float> back = Decode({4, 32}, encoded, 32);
  EXPECT_EQ(back[31], 2.125f);
  EXPECT_NEAR(back[3], 0, 1e-6);
}

TEST(AffineEncode, ConstantsAndZeros) {
  EXPECT_EQ(Decode({8, 32}, Encode({8, 32}, std::vector<float>(32, 0.0f)), 32),
            std::vector<float>(32, 0.0f));
  const Encoded encoded = Encode({4, 32}, std::vector<float>(32, -0.75f));
  EXPECT_EQ(Decode({4, 32}, encoded, 32), std::vector<float>(32, -0.75f));
}

TEST(AffineEncode, RefusesWhatIsNotFinite) {
  std::vector<float> row(64, 1.0f);
  row[40] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(Encode({4, 32}, row).finite);
  row[40] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(Encode({4, 32}, row).finite);
}

}  // namespace
}  // namespace tq

// Quantized matrices made of a few bytes: what they decode to, and what malformed ones are told.
#include <cmath>

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "codec/test_tensors.h"
#include "weights/fake_source_for_test.h"
#include "weights/matrix_tensors.h"

namespace tq {
namespace {

std::vector<float> Read(const FakeSource& source, int64_t rows, int64_t cols) {
  auto read = ReadMatrix(source, "m", rows, cols, false);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? MatrixFloats(read->matrix) : std::vector<float>();
}

std::string Error(const FakeSource& source, int64_t rows, int64_t cols) {
  auto read = ReadMatrix(source, "m", rows, cols, false);
  EXPECT_FALSE(read.ok());
  const std::string message = read.ok() ? "" : read.status().message();
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

// e4m3: 0x38 is 1, 0x40 is 2, 0xB8 is -1.
TEST(MatrixTensors, Fp8WithBlockRowAndSingleScales) {
  std::vector<uint8_t> codes(40 * 48, 0x38);
  codes[0] = 0x40;
  codes[39 * 48 + 47] = 0xB8;
  FakeSource blocks;
  blocks.Add("m.weight", DType::kF8E4M3, {40, 48}, codes);
  blocks.Add<float>("m.scales", DType::kF32, {2, 2}, {1, 2, 3, 4});
  std::vector<float> got = Read(blocks, 40, 48);  // blocks of 32 x 32
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[32], 2);
  EXPECT_EQ(got[32 * 48 + 31], 3);
  EXPECT_EQ(got[39 * 48 + 47], -4);

  FakeSource rows;
  rows.Add("m.weight", DType::kF8E4M3, {40, 48}, codes);
  std::vector<uint16_t> scales(40, 0x3F80);  // bf16 1
  scales[39] = 0x4040;                       // 3
  rows.Add("m.scales", DType::kBf16, {40, 1}, scales);
  EXPECT_EQ(Read(rows, 40, 48)[39 * 48 + 47], -3);

  FakeSource one;
  one.Add("m.weight", DType::kF8E4M3, {40, 48}, codes);
  one.Add<float>("m.scales", DType::kF32, {}, {0.5f});
  EXPECT_EQ(Read(one, 40, 48)[39 * 48 + 47], -0.5f);
  EXPECT_EQ(FormatName(ReadMatrix(one, "m", 40, 48, false)->matrix), "fp8 g48");

  FakeSource odd;
  odd.Add("m.weight", DType::kF8E4M3, {40, 48}, codes);
  odd.Add<float>("m.scales", DType::kF32, {5, 1}, {1, 1, 1, 1, 1});  // blocks of 8 rows
  EXPECT_EQ(Read(odd, 40, 48)[1], 1);

  FakeSource bad;
  codes[5] = 0x7F;
  bad.Add("m.weight", DType::kF8E4M3, {40, 48}, codes);
  bad.Add<float>("m.scales", DType::kF32, {1}, {1});
  EXPECT_EQ(Error(bad, 40, 48), "tensor m.weight: expected finite weights, found NaN");
}

TEST(MatrixTensors, SymmetricIntegersAreCentred) {
  FakeSource source;
  std::vector<int32_t> words(2 * 4, static_cast<int32_t>(0x88888888));
  words[0] = 0x76543210;
  source.Add("m.weight", DType::kI32, {2, 4}, words);
  source.Add<float>("m.scales", DType::kF32, {2, 1}, {0.5f, 1});
  source.Add<int64_t>("m.weight_shape", DType::kI64, {2}, {2, 32});
  const std::vector<float> got = Read(source, 2, 32);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(got[static_cast<size_t>(i)], 0.5f * static_cast<float>(i - 8));
  EXPECT_EQ(got[8], 0);
  EXPECT_EQ(ReadMatrix(source, "m", 2, 32, false)->parts.size(), 3u);

  source.Add<int32_t>("m.weight_zero_point", DType::kI32, {1}, {0});
  EXPECT_EQ(Error(source, 2, 32),
            "tensor m.weight_zero_point: quantized with zero points or reordered columns, which is "
            "not supported: start from the unquantized checkpoint");
}

TEST(MatrixTensors, NvFp4DividesByItsGlobalScale) {
  FakeSource source;
  std::vector<uint8_t> codes(16, 0x22);  // 1, 1
  codes[0] = 0xF7;                       // 6, -6
  source.Add("m.weight", DType::kU8, {1, 16}, codes);
  source.Add<uint8_t>("m.scales", DType::kF8E4M3, {1, 2}, {0x40, 0x38});  // 2, 1
  source.Add<float>("m.global_scale", DType::kF32, {1}, {4});
  const std::vector<float> got = Read(source, 1, 32);
  EXPECT_EQ(got[0], 3);
  EXPECT_EQ(got[1], -3);
  EXPECT_EQ(got[15], 0.5f);
  EXPECT_EQ(got[16], 0.25f);
  EXPECT_EQ(FormatName(ReadMatrix(source, "m", 1, 32, false)->matrix), "nvfp4");

  FakeSource zero;
  zero.Add("m.weight", DType::kU8, {1, 16}, codes);
  zero.Add<uint8_t>("m.scales", DType::kF8E4M3, {1, 2}, {0x40, 0x38});
  zero.Add<float>("m.global_scale", DType::kF32, {1}, {0});
  EXPECT_EQ(Error(zero, 1, 32),
            "tensor m.global_scale: expected a positive number, found 0.000000");
}

// An affine matrix of 2 rows and 64 columns, 4 bits, one group per row, with one part changed.
FakeSource AffineWith(const Shape& weight, const Shape& scales, const Shape& biases,
                      uint16_t scale = 0x3F80) {
  FakeSource source;
  source.Add("m.weight", DType::kU32, weight,
             std::vector<uint32_t>(static_cast<size_t>(NumElements(weight)), 0x11111111));
  source.Add("m.scales", DType::kBf16, scales,
             std::vector<uint16_t>(static_cast<size_t>(NumElements(scales)), scale));
  if (!biases.empty()) {
    source.Add("m.biases", DType::kBf16, biases,
               std::vector<uint16_t>(static_cast<size_t>(NumElements(biases)), 0x3F80));
  }
  return source;
}

TEST(MatrixTensors, MalformedAffineIsOneLine) {
  EXPECT_EQ(Read(AffineWith({2, 8}, {2, 1}, {2, 1}), 2, 64), std::vector<float>(128, 2.0f));
  EXPECT_EQ(Error(AffineWith({2, 8}, {2, 1}, {}), 2, 64),
            "tensor m.scales: expected biases beside it, found none");
  EXPECT_EQ(Error(AffineWith({2, 8}, {2, 1}, {1, 2}), 2, 64),
            "tensor m.biases: expected BF16 [2, 1], found BF16 [1, 2]");
  EXPECT_EQ(Error(AffineWith({2, 8}, {1, 2}, {1, 2}), 2, 64),
            "tensor m.scales: expected [2, 64 / group], found BF16 [1, 2]");
  EXPECT_EQ(Error(AffineWith({2, 14}, {2, 1}, {2, 1}), 2, 64),
            "tensor m.scales: expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128 of 64 "
            "columns in [2, 14], found BF16 [2, 1]");
  EXPECT_EQ(Error(AffineWith({2, 7}, {2, 1}, {2, 1}), 2, 64),
            "tensor m.weight: expected whole codes of 64 columns, found U32 [2, 7]");
  EXPECT_EQ(Error(AffineWith({4, 4}, {2, 1}, {2, 1}), 2, 64),
            "tensor m.weight: expected 2 rows of codes from config.json, found U32 [4, 4]");
  EXPECT_EQ(Error(AffineWith({2, 8}, {2, 4}, {2, 4}), 2, 64),
            "tensor m.scales: expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128 of 64 "
            "columns in [2, 8], found BF16 [2, 4]");
  for (const uint16_t scale :
       {uint16_t{0x7F80}, uint16_t{0x7FC0}, uint16_t{0x7F00}}) {  // infinity, NaN, 1.7e38
    EXPECT_EQ(
        Error(AffineWith({2, 8}, {2, 1}, {2, 1}, scale), 2, 64),
        "tensor m.scales: expected scales of finite weights, found NaN, infinity or too large "
        "at 0, 0");
  }
  EXPECT_EQ(Error(AffineWith({2, 8}, {2, 1}, {2, 1}), 2, 0),
            "tensor m.weight: expected 1 to 2^31 rows and columns, found [2, 0] in config.json");
}

TEST(MatrixTensors, MalformedMicroFloatsAreOneLine) {
  FakeSource source;
  source.Add("m.weight", DType::kU32, {1, 4}, std::vector<uint32_t>(4, 0x11111111));
  source.Add<uint8_t>("m.scales", DType::kU8, {1, 1}, {253});
  EXPECT_NE(Error(source, 1, 32).find("expected scales of finite weights"), std::string::npos);
  FakeSource wide;
  wide.Add("m.weight", DType::kU32, {1, 4}, std::vector<uint32_t>(4, 0x11111111));
  wide.Add<uint8_t>("m.scales", DType::kU8, {1, 4}, {1, 1, 1, 1});
  EXPECT_NE(Error(wide, 1, 32).find("expected mxfp4, nvfp4 or mxfp8 scales"), std::string::npos);
}

// Property of the reference's vectors: the residual's product with an activation.
TEST(MatrixTensors, QjlResidualIsATermOfTheWeights) {
  const TestTensors vectors(TQ_TEST_DATA "/turboquant/vectors.safetensors");
  for (const char* width : {"64", "96", "160", "352"}) {
    const std::string at = std::string("qjl/") + width + "/";
    const auto& packed = vectors[at + "weight"];
    const auto& scales = vectors[at + "scales"];
    const int64_t rows = packed.shape[0];
    const int64_t cols = std::stoi(width);
    std::vector<uint16_t> qjl_signs;
    for (const float sign : vectors[std::string("qjl_signs/") + width].Floats()) {
      qjl_signs.push_back(F32ToF16(sign));
    }
    const auto add = [&](FakeSource& source) {
      source.Add("m.weight", DType::kU32, packed.shape, packed.As<uint32_t>());
      source.Add("m.scales", DType::kF16, scales.shape, scales.As<uint16_t>());
      source.Add("m.codebook", DType::kF16, {8}, vectors["codebook/3/f16"].As<uint16_t>());
      source.Add("m.signs", DType::kF16, {cols},
                 std::vector<uint16_t>(static_cast<size_t>(cols), 0x3C00));
    };
    FakeSource plain;
    add(plain);
    FakeSource full;
    add(full);
    const auto& bits = vectors[at + "qjl_packed"];
    full.Add("m.qjl_packed", DType::kU32, bits.shape, bits.As<uint32_t>());
    full.Add("m.qjl_norms", DType::kF16, {rows}, vectors[at + "qjl_norms"].As<uint16_t>());
    full.Add("m.qjl_signs", DType::kF16, {cols}, qjl_signs);
    const std::vector<float> without = Read(plain, rows, cols);
    const std::vector<float> with = Read(full, rows, cols);
    const std::vector<float> x = vectors[at + "x_rot"].Floats();
    const std::vector<float> want = vectors[at + "correction_f32"].Floats();  // [tokens, rows]
    for (size_t i = 0; i < want.size(); ++i) {
      const int64_t token = static_cast<int64_t>(i) / rows;
      const int64_t row = static_cast<int64_t>(i) % rows;
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c) {
        sum += static_cast<double>(with[row * cols + c] - without[row * cols + c]) *
               static_cast<double>(x[token * cols + c]);
      }
      EXPECT_NEAR(sum, want[i], 2e-5 * (1 + std::fabs(want[i]))) << width << " " << i;
    }
  }
}

}  // namespace
}  // namespace tq

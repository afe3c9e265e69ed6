#include "codec/codec.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/float8.h"
#include "tensor/half.h"

namespace tq {
namespace {

TEST(Codec, TableFollowsTheEnumAndNamesAreUnique) {
  std::set<std::string> names;
  size_t index = 0;
  for (const CodecInfo& info : AllCodecs()) {
    EXPECT_EQ(static_cast<size_t>(info.id), index++);
    EXPECT_EQ(&GetCodec(info.id), &info);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_GE(info.block_values, 1);
    EXPECT_GE(info.block_bytes, 0);
    EXPECT_NE(info.decode_row, nullptr);
  }
}

// Property: all_finite says what decoding says, for every bit pattern of every scale byte pair.
TEST(Codec, AllFiniteAgreesWithDecoding) {
  for (const CodecInfo& info : AllCodecs()) {
    if (info.block_bytes == 0) continue;
    std::vector<float> values(static_cast<size_t>(info.block_values));
    for (int at = 0; at < info.block_bytes; ++at) {
      for (const int high : {0x00, 0x3C, 0x7B, 0x7C, 0x7E, 0x7F, 0x80, 0xFC, 0xFF}) {
        // Codes of 0x11 use the scales: a value of zero times infinity is NaN as well.
        std::vector<std::byte> block(static_cast<size_t>(info.block_bytes), std::byte{0x11});
        block[static_cast<size_t>(at)] = static_cast<std::byte>(high);
        StoredMatrix matrix;
        matrix.format.codec = info.id;
        matrix.rows = 1;
        matrix.cols = info.block_values;
        matrix.data = block.data();
        matrix.row_bytes = info.block_bytes;
        DecodeRow(matrix, 0, 0, matrix.cols, values.data());
        bool finite = true;
        for (const float value : values) finite = finite && std::isfinite(value);
        EXPECT_EQ(info.all_finite(block), finite) << info.name << " byte " << at << " = " << high;
      }
    }
  }
}

TEST(Codec, FormatNames) {
  EXPECT_EQ(FormatName(Format{.codec = CodecId::kBf16, .bits = 16}), "bf16");
  const Format hadamard = {CodecId::kTurboQuant, 3, 64, Transform::kHadamard};
  EXPECT_EQ(FormatName(hadamard), "turboquant 3-bit g64 hadamard");
  const Format plain = {CodecId::kTurboQuant, 2, 32, Transform::kNone};
  EXPECT_EQ(FormatName(plain), "turboquant 2-bit g32");
  EXPECT_EQ(FormatName(Format{CodecId::kAffine, 3, 64}), "affine 3-bit g64");
  EXPECT_EQ(FormatName(Format{CodecId::kFp4, 4, 32}), "fp4 g32");
  const std::vector<float> trits = {-1, 0, 1};
  StoredMatrix matrix;
  matrix.format = plain;
  matrix.codebook = trits;
  EXPECT_EQ(FormatName(matrix), "turboquant trit g32");
  matrix.format = {CodecId::kFp8, 8, 32};
  matrix.scale_type = DType::kE8M0;
  EXPECT_EQ(FormatName(matrix), "mxfp8");
}

TEST(Codec, AffineCodesAreOneBitStream) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    std::vector<std::byte> codes(static_cast<size_t>(64 * bits / 8));
    for (size_t i = 0; i < 64; ++i) {  // code i % 2^bits, bit by bit
      for (int b = 0; b < bits; ++b) {
        const size_t bit = i * static_cast<size_t>(bits) + static_cast<size_t>(b);
        if (i >> b & 1) codes[bit / 8] |= static_cast<std::byte>(1 << bit % 8);
      }
    }
    const float scales[] = {0.5f, 2.0f};
    const float biases[] = {-1.0f, 3.0f};
    StoredMatrix matrix;
    matrix.format = {CodecId::kAffine, bits, 32};
    matrix.rows = 1;
    matrix.cols = 64;
    matrix.data = codes.data();
    matrix.row_bytes = static_cast<int64_t>(codes.size());
    matrix.scales = reinterpret_cast<const std::byte*>(scales);
    matrix.biases = reinterpret_cast<const std::byte*>(biases);
    matrix.scale_type = DType::kF32;
    EXPECT_EQ(matrix.stored_bytes(), matrix.row_bytes + 16);
    for (const int64_t col : {0, 3, 31, 37}) {  // any piece of a row
      std::vector<float> out(static_cast<size_t>(64 - col));
      DecodeRow(matrix, 0, col, 64 - col, out.data());
      for (int64_t i = col; i < 64; ++i) {
        const auto code = static_cast<float>(i & ((1 << bits) - 1));
        EXPECT_EQ(out[static_cast<size_t>(i - col)], scales[i / 32] * code + biases[i / 32]);
      }
    }
  }
}

TEST(Codec, SmallFloatsFollowTheirDefinition) {
  EXPECT_EQ(E4M3ToF32(0x00), 0);
  EXPECT_EQ(E4M3ToF32(0x01), 0x1p-9f);
  EXPECT_EQ(E4M3ToF32(0x08), 0x1p-6f);
  EXPECT_EQ(E4M3ToF32(0x38), 1);
  EXPECT_EQ(E4M3ToF32(0x7E), 448);
  EXPECT_EQ(E4M3ToF32(0xFE), -448);
  EXPECT_EQ(E8M0ToF32(0), 0x1p-127f);
  EXPECT_EQ(E8M0ToF32(127), 1);
  EXPECT_EQ(E8M0ToF32(254), 0x1p127f);
}

TEST(Codec, PlainFormatsDecodeFromAnyByteOffset) {
  const std::vector<float> values = {0.0f, 1.0f, -2.5f, 65504.0f, -0.125f, 3.0f};
  for (const CodecId id : {CodecId::kF32, CodecId::kF16, CodecId::kBf16}) {
    const int size = GetCodec(id).block_bytes;
    std::vector<std::byte> bytes(1 + values.size() * size);
    std::vector<float> stored;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t wide = std::bit_cast<uint32_t>(values[i]);
      const uint16_t half = id == CodecId::kF16 ? F32ToF16(values[i]) : F32ToBf16(values[i]);
      std::memcpy(&bytes[1 + i * size], size == 4 ? static_cast<const void*>(&wide) : &half, size);
      stored.push_back(id == CodecId::kF32   ? values[i]
                       : id == CodecId::kF16 ? F16ToF32(half)
                                             : Bf16ToF32(half));
    }
    StoredMatrix matrix;
    matrix.format.codec = id;
    matrix.rows = 2;
    matrix.cols = 3;
    matrix.data = bytes.data() + 1;
    matrix.row_bytes = 3 * size;
    EXPECT_EQ(matrix.stored_bytes(), 6 * size);
    float out[2] = {};
    DecodeRow(matrix, 1, 1, 2, out);
    EXPECT_EQ(out[0], stored[4]);
    EXPECT_EQ(out[1], stored[5]);
  }
}

}  // namespace
}  // namespace tq

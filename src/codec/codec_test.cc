#include "codec/codec.h"

#include <bit>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

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

TEST(Codec, FormatNames) {
  EXPECT_EQ(FormatName(Format{.codec = CodecId::kBf16, .bits = 16}), "bf16");
  const Format hadamard = {CodecId::kTurboQuant, 3, 64, Transform::kHadamard};
  EXPECT_EQ(FormatName(hadamard), "turboquant 3-bit g64 hadamard");
  const Format plain = {CodecId::kTurboQuant, 2, 32, Transform::kNone};
  EXPECT_EQ(FormatName(plain), "turboquant 2-bit g32");
  const std::vector<float> trits = {-1, 0, 1};
  StoredMatrix matrix;
  matrix.format = plain;
  matrix.codebook = trits;
  EXPECT_EQ(FormatName(matrix), "turboquant trit g32");
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

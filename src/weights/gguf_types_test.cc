#include "weights/gguf_types.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/file.h"
#include "codec/codec.h"
#include "weights/gguf_container.h"
#include "weights/gguf_translate.h"
#include "weights/safetensors.h"

namespace tq {
namespace {

TEST(GgufTypes, SizesAgreeWithTheCodecs) {
  for (uint32_t id = 0; id < 64; ++id) {
    const GgufTensorType* type = FindGgufTensorType(id);
    if (type == nullptr || !type->codec) continue;
    const CodecInfo& codec = GetCodec(*type->codec);
    EXPECT_EQ(static_cast<int>(type->block_values), codec.block_values) << type->name;
    EXPECT_EQ(static_cast<int>(type->block_bytes), codec.block_bytes) << type->name;
  }
  for (const uint32_t removed : {4u, 5u, 9u, 15u, 31u, 32u, 33u, 36u, 37u, 38u, 43u}) {
    EXPECT_EQ(FindGgufTensorType(removed), nullptr) << removed;
  }
}

// Random bits and quantized data in every block format, special values in the plain ones: bit for
// bit.
TEST(GgufTypes, ValuesEqualTheReferenceBitForBit) {
  const std::string folder = TQ_TEST_DATA "/gguf/types/";
  const auto mapped = MappedFile::Open(folder + "types.gguf");
  const auto expected_file = MappedFile::Open(folder + "types.expected.safetensors");
  ASSERT_TRUE(mapped.ok() && expected_file.ok());
  const auto file = ParseGguf((*mapped)->bytes(), "types.gguf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto expected = ParseSafetensors((*expected_file)->bytes(), "types.expected");
  ASSERT_TRUE(expected.ok()) << expected.status().message();

  int compared = 0;
  int without_codec = 0;
  for (const GgufTensorInfo& info : file->tensors) {
    const auto values = ReadGgufFloats(info, "types.gguf");
    if (!info.type->codec) {
      EXPECT_EQ(values.status().code(), StatusCode::kUnsupported);
      EXPECT_NE(values.status().message().find(info.type->name), std::string::npos);
      ++without_codec;
      continue;
    }
    ASSERT_TRUE(values.ok()) << values.status().message();
    const auto it = std::find_if(expected->tensors.begin(), expected->tensors.end(),
                                 [&](const SourceTensor& t) { return t.name == info.name; });
    ASSERT_NE(it, expected->tensors.end()) << info.name;
    EXPECT_EQ(info.shape, it->shape) << info.name;
    ASSERT_EQ(values->size() * 4, it->bytes.size()) << info.name;
    EXPECT_EQ(std::memcmp(values->data(), it->bytes.data(), it->bytes.size()), 0) << info.name;
    ++compared;
  }
  EXPECT_GE(compared, 40);
  EXPECT_GE(without_codec, 14);
}

// Any whole number of blocks in the middle of a row decodes to the same values as the whole row.
TEST(GgufTypes, PartsOfRowsEqualTheWhole) {
  for (const CodecInfo& codec : AllCodecs()) {
    if (codec.block_values == 1 || codec.block_bytes == 0) continue;
    std::vector<std::byte> data(static_cast<size_t>(codec.block_bytes) * 6);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>((i * 37 + 11) & 0x3F);
    StoredMatrix m;
    m.format.codec = codec.id;
    m.rows = 2;
    m.cols = 3 * codec.block_values;
    m.data = data.data();
    m.row_bytes = 3 * codec.block_bytes;
    std::vector<float> whole(static_cast<size_t>(m.cols));
    DecodeRow(m, 1, 0, m.cols, whole.data());
    std::vector<float> part(static_cast<size_t>(codec.block_values));
    for (int block = 0; block < 3; ++block) {
      DecodeRow(m, 1, block * codec.block_values, codec.block_values, part.data());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + block * codec.block_values,
                            part.size() * sizeof(float)),
                0)
          << codec.name;
    }
  }
}

}  // namespace
}  // namespace tq

#include "weights/safetensors.h"

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/safetensors_writer.h"

namespace tq {
namespace {

std::vector<std::byte> FileBytes(std::string_view header, size_t data_bytes) {
  std::vector<std::byte> out(8 + header.size() + data_bytes);
  const uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i) out[8 + header.size() + i] = static_cast<std::byte>(i);
  return out;
}

// The message of the refusal, or "" when the file was accepted.
std::string Refusal(std::string_view header, size_t data_bytes) {
  const auto result = ParseSafetensors(FileBytes(header, data_bytes), "m.safetensors");
  return result.ok() ? "" : result.status().message();
}

void ExpectRefused(std::string_view header, size_t data_bytes, std::string_view part) {
  const std::string message = Refusal(header, data_bytes);
  EXPECT_NE(message.find(part), std::string::npos) << header << "\n" << message;
  EXPECT_NE(message.find("m.safetensors"), std::string::npos) << message;
}

TEST(Safetensors, ReadsTensorsSortedWithMetadata) {
  const auto bytes = FileBytes(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"BF16","shape":[1,3],"data_offsets":[8,14]},)"
      R"("i":{"dtype":"I64","shape":[],"data_offsets":[14,22]},)"
      R"("z":{"dtype":"F16","shape":[0,4],"data_offsets":[14,14]}}  )",
      22);
  const auto file = ParseSafetensors(bytes, "m");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->metadata.at("format"), "pt");
  ASSERT_EQ(file->tensors.size(), 4u);
  const SourceTensor& a = file->tensors[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.shape, (Shape{1, 3}));
  EXPECT_EQ(a.dtype, DType::kBf16);
  EXPECT_EQ(a.codec, CodecId::kBf16);
  EXPECT_TRUE(a.is_float_like);
  ASSERT_EQ(a.bytes.size(), 6u);
  EXPECT_EQ(a.bytes[0], std::byte{8});
  EXPECT_FALSE(file->tensors[2].is_float_like);
  EXPECT_FALSE(ReadFloats(file->tensors[2]).ok());
  EXPECT_TRUE(file->tensors[3].bytes.empty());
  EXPECT_TRUE(ReadFloats(file->tensors[3]).ok());
}

TEST(Safetensors, RefusesEveryLie) {
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "truncated");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 12, "12 bytes");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12, "hole");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "\"a\"");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "expected 12");
  ExpectRefused(R"({"a":{"dtype":"Q7","shape":[2],"data_offsets":[0,8]}})", 8, "\"Q7\"");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "-2");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "2.0");
  ExpectRefused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                "overflow");
  ExpectRefused(R"({"a":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                "overflow");
  ExpectRefused(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,0]}})", 0,
                "sizes");
  ExpectRefused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                2, "a");
  ExpectRefused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                3, "overlap");
  ExpectRefused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1}})", 1, "extra");
  ExpectRefused(R"({"a":[]})", 0, "object");
  ExpectRefused(R"({"__metadata__":{"x":1}})", 0, "__metadata__");
  ExpectRefused(R"([])", 0, "'{'");
  ExpectRefused(R"({"a":)", 0, "m.safetensors");
  ExpectRefused("", 0, "'{'");
}

TEST(Safetensors, RefusesHeaderLengths) {
  for (const uint64_t length : {uint64_t{3}, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::vector<std::byte> bytes(10);
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_FALSE(ParseSafetensors(bytes, "m").ok());
  }
  EXPECT_FALSE(ParseSafetensors(std::vector<std::byte>(7), "m").ok());
}

class SafetensorsWriterTest : public testing::Test {
 protected:
  const std::string path_ = testing::TempDir() + "/writer_test.safetensors";
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(SafetensorsWriterTest, RoundTrip) {
  auto writer = SafetensorsWriter::Create(path_,
                                          {{"w", DType::kF32, {2, 2}},
                                           {"empty", DType::kBf16, {0, 7}},
                                           {"odd", DType::kU8, {3}},
                                           {"tail", DType::kI32, {0}}},
                                          {{"format", "pt"}});
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  const std::vector<float> values = {1.0f, -2.5f, 3.0f, 0.125f};
  const auto bytes = std::as_bytes(std::span(values));
  ASSERT_TRUE((*writer)->Append("w", bytes.first(5)).ok());
  ASSERT_TRUE((*writer)->Append("w", bytes.subspan(5)).ok());
  const std::array<std::byte, 3> odd = {std::byte{7}, std::byte{8}, std::byte{9}};
  ASSERT_TRUE((*writer)->Append("odd", odd).ok());
  ASSERT_TRUE((*writer)->Finish().ok());

  const auto file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto parsed = ParseSafetensors((*file)->bytes(), path_);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->metadata.at("format"), "pt");
  ASSERT_EQ(parsed->tensors.size(), 4u);
  EXPECT_EQ(parsed->tensors[1].bytes[2], std::byte{9});
  EXPECT_EQ((parsed->tensors[3].bytes.data() - (*file)->bytes().data()) % 8, 0);
  const auto floats = ReadFloats(parsed->tensors[3]);
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ(*floats, values);
}

TEST_F(SafetensorsWriterTest, RefusesShortAndExtraDataAndRemovesTheFile) {
  const std::array<std::byte, 8> bytes{};
  {
    auto writer =
        SafetensorsWriter::Create(path_, {{"a", DType::kU8, {4}}, {"b", DType::kU8, {4}}}, {});
    ASSERT_TRUE(writer.ok());
    EXPECT_FALSE((*writer)->Append("a", bytes).ok());
    EXPECT_FALSE((*writer)->Append("b", std::span(bytes).first(4)).ok());
    EXPECT_TRUE((*writer)->Append("a", std::span(bytes).first(4)).ok());
    EXPECT_FALSE((*writer)->Append("a", std::span(bytes).first(1)).ok());
    const Status status = (*writer)->Finish();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("\"b\""), std::string::npos);
  }
  EXPECT_FALSE(FileExists(path_));
}

TEST_F(SafetensorsWriterTest, RefusesBadDeclarations) {
  using Tensors = std::vector<SafetensorsWriter::Tensor>;
  for (const Tensors& tensors :
       {Tensors{{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}},
        Tensors{{"__metadata__", DType::kU8, {1}}}, Tensors{{"\xFF", DType::kU8, {1}}},
        Tensors{{"a", DType::kU8, {-1}}},
        Tensors{{"a", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}}}) {
    const auto writer = SafetensorsWriter::Create(path_, tensors, {});
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.status().code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(FileExists(path_));
  }
}

}  // namespace
}  // namespace tq

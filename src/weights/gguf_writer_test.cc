#include "weights/gguf_writer.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/gguf_container.h"

namespace tq {
namespace {

class GgufWriterTest : public testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }
  std::string path_ = testing::TempDir() + "tq_gguf_writer_test.gguf";
};

template <typename T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

TEST_F(GgufWriterTest, ReadsBack) {
  GgufMetadata metadata;
  metadata.Text("general.architecture", "none");
  metadata.Int("a.int", 7);
  metadata.Float("a.float", 0.5f);
  metadata.Bool("a.bool", true);
  const std::vector<std::string> texts = {"x", "", "yz"};
  metadata.Texts("a.texts", texts);
  metadata.Ints("a.ints", std::vector<int32_t>{-1, 2});
  metadata.Floats("a.floats", std::vector<float>{1.5f});
  metadata.Bools("a.bools", {true, false, true});
  // 3 x 5 f32 are 60 bytes: the second tensor begins after four bytes of padding.
  auto writer = GgufWriter::Create(path_, metadata, {{"first", {3, 5}, 0}, {"second", {2, 32}, 8}});
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  std::vector<float> first(15);
  for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(i);
  std::vector<uint8_t> second(68);
  for (size_t i = 0; i < second.size(); ++i) second[i] = static_cast<uint8_t>(i);
  ASSERT_TRUE((*writer)->Append("first", Bytes(first).first(8)).ok());
  ASSERT_TRUE((*writer)->Append("first", Bytes(first).subspan(8)).ok());
  ASSERT_TRUE((*writer)->Append("second", Bytes(second)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());

  const auto mapped = MappedFile::Open(path_);
  ASSERT_TRUE(mapped.ok());
  const auto file = ParseGguf((*mapped)->bytes(), path_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->version, 3u);
  EXPECT_EQ(file->keys.size(), 8u);
  EXPECT_EQ(file->keys.find("a.int")->second.IntAt(0), 7);
  EXPECT_EQ(file->keys.find("a.float")->second.FloatAt(0), 0.5);
  EXPECT_EQ(file->keys.find("a.bool")->second.BoolAt(0), true);
  EXPECT_EQ(file->keys.find("a.texts")->second.strings[2], "yz");
  EXPECT_EQ(file->keys.find("a.ints")->second.IntAt(0), -1);
  EXPECT_EQ(file->keys.find("a.floats")->second.FloatAt(0), 1.5);
  EXPECT_EQ(file->keys.find("a.bools")->second.BoolAt(1), false);
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].shape, (Shape{3, 5}));
  EXPECT_TRUE(std::equal(Bytes(first).begin(), Bytes(first).end(), file->tensors[0].bytes.begin()));
  EXPECT_EQ(file->tensors[1].type->name, "Q8_0");
  EXPECT_EQ(file->tensors[1].offset, 64u);
  EXPECT_TRUE(
      std::equal(Bytes(second).begin(), Bytes(second).end(), file->tensors[1].bytes.begin()));
}

TEST_F(GgufWriterTest, HeaderIsReadableBeforeTheData) {
  auto writer = GgufWriter::Create(path_, GgufMetadata(), {{"t", {4}, 0}});
  ASSERT_TRUE(writer.ok());
  const auto mapped = MappedFile::Open(path_);
  ASSERT_TRUE(mapped.ok());
  EXPECT_TRUE(ParseGguf((*mapped)->bytes(), path_).ok());
}

TEST_F(GgufWriterTest, UnfinishedFileIsRemoved) {
  {
    auto writer = GgufWriter::Create(path_, GgufMetadata(), {{"t", {4}, 0}});
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(FileExists(path_));
  }
  EXPECT_FALSE(FileExists(path_));
}

}  // namespace
}  // namespace tq

#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace tq {
namespace {

std::string Fresh(const std::string& name) {
  const std::string path = testing::TempDir() + "tq_file_test_" + name;
  std::filesystem::remove_all(path);
  return path;
}

TEST(MappedFile, MapsAndReportsErrors) {
  const std::string path = Fresh("map");
  ASSERT_TRUE(WriteFile(path, "hello").ok());
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->bytes().size(), 5u);
  EXPECT_EQ(MappedFile::Open(path + ".no").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(MappedFile::Open("/tmp").status().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(WriteFile(path, "").ok());
  EXPECT_EQ((*MappedFile::Open(path))->bytes().size(), 0u);
}

TEST(ReadTextFile, BoundsSize) {
  const std::string path = Fresh("read");
  ASSERT_TRUE(WriteFile(path, "12345").ok());
  EXPECT_EQ(*ReadTextFile(path), "12345");
  EXPECT_EQ(ReadTextFile(path, 4).status().code(), StatusCode::kCorrupt);
}

TEST(StagedDirectory, AppearsWholeOrNotAtAll) {
  const std::string path = Fresh("staged");
  {
    auto dir = StagedDirectory::Create(path + "/");
    ASSERT_TRUE(dir.ok());
    ASSERT_TRUE(WriteFile((*dir)->path() + "/a", "x").ok());
    EXPECT_FALSE(FileExists(path));
  }
  EXPECT_FALSE(FileExists(path));
  auto dir = StagedDirectory::Create(path);
  ASSERT_TRUE(dir.ok());
  ASSERT_TRUE(WriteFile((*dir)->path() + "/a", "x").ok());
  ASSERT_TRUE((*dir)->Commit().ok());
  EXPECT_EQ(*ListDirectory(path), std::vector<std::string>{"a"});
  EXPECT_EQ(StagedDirectory::Create(path).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tq

#include "base/file.h"

#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "base/mapped_pages.h"
#include "base/memory.h"

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

int64_t Sum(std::span<const std::byte> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}, [](int64_t sum, std::byte b) {
    return sum + std::to_integer<int64_t>(b);
  });
}

// Only memory of a mapped file, which comes back as it was.
TEST(MappedPages, ArePutAway) {
  constexpr int64_t kBytes = int64_t{24} << 20;
  const std::string path = Fresh("drop");
  ASSERT_TRUE(WriteFile(path, std::string(kBytes, 'x')).ok());
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  const std::span<const std::byte> bytes = (*file)->bytes();
  EXPECT_EQ(Sum(bytes), kBytes * 'x');
  const int64_t before = ResidentBytes();
  DropMappedPages(bytes.subspan(1, kBytes - 2));
  EXPECT_LT(ResidentBytes(), before - kBytes / 2);
  EXPECT_EQ(Sum(bytes), kBytes * 'x');

  const std::string own(kBytes, 'y');
  DropMappedPages(std::as_bytes(std::span(own)));
  EXPECT_EQ(Sum(std::as_bytes(std::span(own))), kBytes * 'y');
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

#include "hub/partial_file.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace tq {
namespace {

// Of "hello world" by sha256sum and by git hash-object.
constexpr const char* kSha256 = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";
constexpr const char* kGitBlob = "95d09f2b10159347eece71399a7e2e907ea3df4f";

class PartialFileTest : public testing::Test {
 protected:
  PartialFileTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("partial_file_test." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "blob").string();
  }
  ~PartialFileTest() override { std::filesystem::remove_all(folder_); }

  static Status Put(PartialFile& file, int64_t chunk, std::string_view text) {
    const Status status =
        file.Write(file.chunk_begin(chunk), std::as_bytes(std::span<const char>(text)));
    return status.ok() ? file.SetComplete(chunk) : status;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(PartialFileTest, ChunksInAnyOrderOverSeveralRuns) {
  {
    auto file = PartialFile::Open(path_, 11, 4);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ((*file)->num_chunks(), 3);
    EXPECT_EQ((*file)->chunk_end(2), 11);
    EXPECT_TRUE(Put(**file, 2, "rld").ok());
    EXPECT_EQ(PartialFile::Open(path_, 11, 4).status().code(), StatusCode::kBusy);
  }
  auto file = PartialFile::Open(path_, 11, 4);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->is_complete(2));
  EXPECT_FALSE((*file)->is_complete(0));
  EXPECT_EQ((*file)->bytes_complete(), 3);
  EXPECT_TRUE(Put(**file, 0, "hell").ok());
  EXPECT_TRUE(Put(**file, 1, "o wo").ok());
  EXPECT_FALSE(FileExists(path_));
  EXPECT_TRUE((*file)->Finish(kSha256, ContentHash::kSha256).ok());
  EXPECT_EQ(*ReadTextFile(path_), "hello world");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_EQ(*HashFile(path_, ContentHash::kGitBlob), kGitBlob);
}

TEST_F(PartialFileTest, AWrongHashLeavesNothing) {
  auto file = PartialFile::Open(path_, 11, 100);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(Put(**file, 0, "hello w0rld").ok());
  EXPECT_EQ((*file)->Finish(kSha256, ContentHash::kSha256).code(), StatusCode::kCorrupt);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(PartialFileTest, AnotherSizeOrChunkStartsAnew) {
  EXPECT_TRUE(Put(**PartialFile::Open(path_, 11, 4), 0, "hell").ok());
  EXPECT_EQ((*PartialFile::Open(path_, 12, 4))->bytes_complete(), 0);
  EXPECT_TRUE(Put(**PartialFile::Open(path_, 12, 4), 0, "hell").ok());
  EXPECT_EQ((*PartialFile::Open(path_, 12, 6))->bytes_complete(), 0);
}

}  // namespace
}  // namespace tq

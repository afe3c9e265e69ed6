#include "hub/repo_files.h"

#include <gtest/gtest.h>

#include "hub/http.h"

namespace tq {
namespace {

const std::string kCommit(40, 'c');
const std::string kBlob(40, 'b');
const std::string kSha(64, 'a');

std::string Listing(const std::string& file) {
  return R"({"sha": ")" + kCommit + R"(", "siblings": [)" + file + "]}";
}

std::string File(const std::string& path, const std::string& blob) {
  return R"({"rfilename": ")" + path + R"(", "size": 3, "blobId": ")" + blob + R"("})";
}

TEST(RepoId, NamesAndRevisions) {
  EXPECT_EQ(ParseRepoId("Qwen/Qwen3-8B")->revision, "main");
  EXPECT_EQ(ParseRepoId("a/b@refs/pr/1")->revision, "refs/pr/1");
  EXPECT_EQ(RepoFolder("/c", *ParseRepoId("a-b/c.d_e")), "/c/models--a-b--c.d_e");
  for (const char* bad : {"", "a", "a/", "/b", "a/b/c", "../b", "a/..", "a/b@", "a/b@../x",
                          "a/b@/x", "a b/c", "a--b/c", "a/b@x/"}) {
    EXPECT_FALSE(ParseRepoId(bad).ok()) << bad;
  }
}

TEST(RepoFiles, ListingOfSmallAndLargeFiles) {
  const RepoId repo = *ParseRepoId("a/b");
  const auto listing = ParseListing(
      Listing(File("config.json", kBlob) + R"(, {"rfilename": "x/y.safetensors", "size": 9,
              "blobId": ")" +
              kBlob + R"(", "lfs": {"sha256": ")" + kSha + R"(", "size": 9}})"),
      repo);
  ASSERT_TRUE(listing.ok()) << listing.status().message();
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 2u);
  EXPECT_EQ(listing->files[0].hash_kind, ContentHash::kGitBlob);
  EXPECT_EQ(listing->files[1].hash, kSha);
  EXPECT_EQ(listing->files[1].hash_kind, ContentHash::kSha256);
}

// Nothing that a server says may name a file outside of the cache.
TEST(RepoFiles, PathsAndHashesStayInTheirFolder) {
  const RepoId repo = *ParseRepoId("a/b");
  for (const char* path : {"../x", "/x", "a/../x", "a//b", "a/.", "", "a\\\\b", "a\\u0001"}) {
    EXPECT_FALSE(ParseListing(Listing(File(path, kBlob)), repo).ok()) << path;
  }
  const std::string bad_hashes[] = {"../../x", std::string(39, 'b'), std::string(40, 'B')};
  for (const std::string& hash : bad_hashes) {
    EXPECT_FALSE(ParseListing(Listing(File("x", hash)), repo).ok()) << hash;
  }
  EXPECT_FALSE(ParseListing(R"({"sha": "../x", "siblings": []})", repo).ok());
  for (const char* bad : {"[]", "{}", "", "<html>", R"({"sha": 3})"}) {
    EXPECT_FALSE(ParseListing(bad, repo).ok()) << bad;
  }
}

TEST(RepoFiles, WeightsOfOtherProgramsAreLeftOut) {
  std::vector<RepoFile> files(4);
  files[0].path = "model.safetensors";
  files[1].path = "pytorch_model.bin";
  files[2].path = "original/params.json";
  files[3].path = "config.json";
  const auto count = [&](const std::vector<std::string>& include,
                         const std::vector<std::string>& exclude, size_t expected_left_out) {
    size_t left_out = 0;
    const size_t selected = SelectFiles(files, include, exclude, &left_out).size();
    EXPECT_EQ(left_out, expected_left_out);
    return selected;
  };
  EXPECT_EQ(count({}, {}, 2), 2u);
  EXPECT_EQ(count({"*"}, {}, 0), 4u);
  EXPECT_EQ(count({"*.bin", "config*"}, {}, 0), 2u);
  EXPECT_EQ(count({}, {"config.json"}, 2), 1u);
  files[0].path = "model.bin";  // nothing but those
  EXPECT_EQ(count({}, {}, 0), 4u);
}

TEST(Http, PathsAreEscaped) {
  EXPECT_EQ(EscapePath("a b/\xC3\xA9?#%.txt"), "a%20b/%C3%A9%3F%23%25.txt");
}

}  // namespace
}  // namespace tq

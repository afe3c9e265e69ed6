#include "weights/checkpoint_content.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/fake_source_for_test.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

std::string ContentOf(const std::vector<float>& values, const std::string& name = "w",
                      const Shape& shape = {4}) {
  FakeSource source;
  source.Add(name, DType::kF32, shape, values);
  return CheckpointContent(source);
}

TEST(CheckpointContent, EveryValueNameAndShapeCounts) {
  const std::string content = ContentOf({1, 2, 3, 4});
  EXPECT_EQ(content.size(), 32u);
  EXPECT_EQ(content, ContentOf({1, 2, 3, 4}));
  EXPECT_NE(content, ContentOf({1, 2, 3.0000002f, 4}));
  EXPECT_NE(content, ContentOf({1, 2, 3, 4}, "v"));
  EXPECT_NE(content, ContentOf({1, 2, 3, 4}, "w", {2, 2}));
}

class NotedContent : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::copy(TQ_TEST_DATA "/models/llama", model_, fs::copy_options::recursive);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Content() const {
    const auto source = OpenSource(model_);
    TQ_CHECK(source.ok());
    const std::string noted = NotedCheckpointContent(**source, notes_);
    EXPECT_EQ(noted, CheckpointContent(**source));
    return noted;
  }
  std::vector<fs::path> Notes() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(notes_)) out.push_back(entry.path());
    return out;
  }
  // One bit of the last tensor; the size and the time of the content stay.
  void ChangeWeights() const {
    const std::string file = model_ + "/model.safetensors";
    const auto time = fs::last_write_time(file);
    std::string bytes = *ReadTextFile(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    TQ_CHECK(WriteFile(file, bytes).ok());
    fs::last_write_time(file, time);
  }

  const std::string folder_ = testing::TempDir() + "checkpoint_content_test";
  const std::string model_ = folder_ + "/model";
  const std::string notes_ = folder_ + "/notes";
};

TEST_F(NotedContent, FilesThatJustChangedAreNotNoted) {
  const std::string before = Content();
  EXPECT_TRUE(Notes().empty());
  ChangeWeights();
  EXPECT_NE(Content(), before);
}

TEST_F(NotedContent, ANoteSavesTheReadAndIsBelievedOnlyWhole) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));  // settled
  const std::string content = Content();
  ASSERT_EQ(Notes().size(), 1u);
  EXPECT_EQ(Content(), content);
  const std::string note = *ReadTextFile(Notes()[0].string());
  // That it is read: a note of other tensors would be believed if it were whole, and is not.
  for (size_t at = 0; at < note.size(); at += 7) {
    std::string changed = note;
    changed[at] = changed[at] == 'a' ? 'b' : 'a';
    ASSERT_TRUE(WriteFile(Notes()[0].string(), changed).ok());
    EXPECT_EQ(Content(), content) << at;
  }
  ASSERT_TRUE(WriteFile(Notes()[0].string(), "").ok());
  EXPECT_EQ(Content(), content);
  EXPECT_EQ(*ReadTextFile(Notes()[0].string()), note);
  ChangeWeights();
  EXPECT_NE(Content(), content);
  // A config.json that changes the arithmetic counts without its note.
  const std::string config = *ReadTextFile(model_ + "/config.json");
  const std::string changed = Content();
  ASSERT_TRUE(WriteFile(model_ + "/config.json", config + " ").ok());
  EXPECT_NE(Content(), changed);
}

}  // namespace
}  // namespace tq

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/safetensors_writer.h"
#include "weights/source.h"

namespace tq {
namespace {

class CheckpointFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void WriteShard(const std::string& name, const std::vector<std::string>& tensors) {
    std::vector<SafetensorsWriter::Tensor> list;
    for (const std::string& tensor : tensors) list.push_back({tensor, DType::kF32, {1}});
    auto writer = SafetensorsWriter::Create(folder_ + "/" + name, list, {});
    ASSERT_TRUE(writer.ok());
    for (const std::string& tensor : tensors) {
      const float value = static_cast<float>(tensor.size());
      ASSERT_TRUE((*writer)->Append(tensor, std::as_bytes(std::span(&value, 1))).ok());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  void WriteText(const std::string& name, std::string_view text) {
    ASSERT_TRUE(WriteFile(folder_ + "/" + name, text).ok());
  }
  void WriteIndex(std::string_view map) {
    WriteText("model.safetensors.index.json",
              R"({"metadata":{"total_size":8},"weight_map":)" + std::string(map) + "}");
  }
  std::string Refusal() {
    const auto source = OpenSource(folder_);
    return source.ok() ? "accepted" : source.status().message();
  }
  void ExpectRefused(std::string_view part) {
    const std::string message = Refusal();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  const std::string folder_ = testing::TempDir() + "/checkpoint_folder_test";
};

TEST_F(CheckpointFolderTest, ReadsARealLayout) {
  const auto source = OpenSource(TQ_TEST_DATA "/models/llama");
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ((*source)->container(), "safetensors");
  const SourceTensor* norm = (*source)->Find("model.norm.weight");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->shape, (Shape{64}));
  const auto values = ReadFloats(*norm);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->size(), 64u);
  (*source)->DropPages(*norm);
  EXPECT_EQ((*source)->Find("model.norm.weigh"), nullptr);
  EXPECT_EQ((*source)->Find("logits"), nullptr);  // expected.safetensors is no shard
  const auto config = (*source)->ReadDocument("config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_NE(config->find("\"llama\""), std::string::npos);
  EXPECT_EQ((*source)->ReadDocument("../llama/config.json").status().code(), StatusCode::kNotFound);
}

TEST_F(CheckpointFolderTest, ShardsWithAndWithoutIndex) {
  WriteShard("model-00001-of-00002.safetensors", {"a", "cc"});
  WriteShard("model-00002-of-00002.safetensors", {"b"});
  WriteText("config.json", "{}");
  WriteText("chat_template.jinja", "hi");
  WriteText("merges.txt", "#version");
  for (const char* name : {"LICENSE", "LICENSE.md", "NOTICE", "README.md", "modeling_x.py"}) {
    WriteText(name, "text");
  }
  WriteText("picture.png", "no document");
  for (const bool with_index : {false, true}) {
    if (with_index) {
      WriteIndex(
          R"({"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors",)"
          R"("cc":"model-00001-of-00002.safetensors"})");
    }
    const auto source = OpenSource(folder_ + "/");
    ASSERT_TRUE(source.ok()) << source.status().message();
    ASSERT_EQ((*source)->tensors().size(), 3u);
    EXPECT_EQ((*source)->tensors()[2].name, "cc");
    EXPECT_EQ(*ReadFloats(*(*source)->Find("cc")), std::vector<float>{2.0f});
    EXPECT_EQ((*source)->DocumentNames(),
              (std::vector<std::string>{"LICENSE", "LICENSE.md", "NOTICE", "README.md",
                                        "chat_template.jinja", "config.json", "merges.txt",
                                        "modeling_x.py"}));
    EXPECT_EQ(*(*source)->ReadDocument("chat_template.jinja"), "hi");
  }
}

TEST_F(CheckpointFolderTest, RefusesWhatTheIndexContradicts) {
  WriteShard("model-1.safetensors", {"a"});
  WriteIndex(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})");
  ExpectRefused("model-2.safetensors");
  WriteIndex(R"({"a":"model-1.safetensors","b":"model-1.safetensors"})");
  ExpectRefused("model-1.safetensors: tensor \"b\"");
  WriteIndex(R"({"a":"../model-1.safetensors"})");
  ExpectRefused("../model-1.safetensors");
  WriteIndex(R"({"a":7})");
  ExpectRefused("\"a\"");
  WriteIndex("[]");
  ExpectRefused("weight_map");
  WriteShard("model-2.safetensors", {"b", "c"});
  WriteIndex(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})");
  ExpectRefused("model-2.safetensors: tensor \"c\"");
  WriteIndex(R"({"a":"model-2.safetensors","b":"model-1.safetensors","c":"model-2.safetensors"})");
  ExpectRefused("model-1.safetensors: tensor \"a\"");
}

TEST_F(CheckpointFolderTest, RefusesTwinsAndEmptyFolders) {
  ExpectRefused("model*.safetensors");
  WriteText("tiny.gguf", "GGUF");
  ExpectRefused("tiny.gguf");
  WriteShard("model-1.safetensors", {"a"});
  WriteShard("model-2.safetensors", {"a"});
  ExpectRefused("model-2.safetensors: tensor \"a\"");
  EXPECT_EQ(OpenSource(folder_ + "/none").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(OpenSource(folder_ + "/model-1.safetensors").ok());
}

}  // namespace
}  // namespace tq

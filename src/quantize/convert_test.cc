#include "quantize/convert.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/safetensors_writer.h"

namespace tq {
namespace {

class ConvertTest : public testing::Test {
 protected:
  void SetUp() override {
    out_ = testing::TempDir() + "tq_convert_test_" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(out_);
    auto source = OpenSource(TQ_TEST_DATA "/models/llama");
    ASSERT_TRUE(source.ok()) << source.status().message();
    source_ = std::move(*source);
    options_.num_threads = 2;
  }
  void TearDown() override { std::filesystem::remove_all(out_); }

  // Everything beside the output that carries its name: staging folders would show here.
  std::vector<std::string> Leftovers() const {
    std::vector<std::string> found;
    const std::filesystem::path out(out_);
    const auto names = ListDirectory(out.parent_path().string());
    for (const std::string& name : *names) {
      if (name.find(out.filename().string()) != std::string::npos) found.push_back(name);
    }
    return found;
  }

  std::string out_;
  std::unique_ptr<WeightSource> source_;
  ConvertOptions options_;
};

TEST_F(ConvertTest, ReportsSizes) {
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
  };
  const auto report = Convert(*source_, out_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->quantized_matrices, 29);  // 4 layers of 7, and the head
  EXPECT_EQ(last, report->total_weights);
  EXPECT_EQ(Leftovers().size(), 1u);
}

TEST_F(ConvertTest, ShardsAreSplitAndIndexed) {
  options_.max_shard_bytes = 20'000;
  const auto report = Convert(*source_, out_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  auto written = OpenSource(out_);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_NE((*written)->Find("model.layers.3.mlp.down_proj.codebook"), nullptr);
  int shards = 0;
  const auto names = ListDirectory(out_);
  for (const std::string& name : *names) shards += name.ends_with(".safetensors") ? 1 : 0;
  EXPECT_GE(shards, 4);
}

TEST_F(ConvertTest, RefusesAnExistingFolder) {
  std::filesystem::create_directories(out_);
  const auto report = Convert(*source_, out_, options_);
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(report.status().message().find("exists already"), std::string::npos);
}

TEST_F(ConvertTest, CancelLeavesNothing) {
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.progress = [&](int64_t done, int64_t total) { cancel = done > total / 2; };
  EXPECT_EQ(Convert(*source_, out_, options_).status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(Leftovers().empty());
}

TEST_F(ConvertTest, RefusesWhatIsQuantizedAlready) {
  ASSERT_TRUE(Convert(*source_, out_, options_).ok());
  auto again = OpenSource(out_);
  ASSERT_TRUE(again.ok());
  const auto report = Convert(**again, out_ + "_2", options_);
  EXPECT_NE(report.status().message().find("is a TurboQuant checkpoint already"),
            std::string::npos);
  EXPECT_EQ(Leftovers().size(), 1u);
}

TEST_F(ConvertTest, RefusesBadSettings) {
  options_.settings.bits = 5;
  EXPECT_EQ(Convert(*source_, out_, options_).status().message(),
            "bits: expected one of 2, 3, 4, found 5");
  options_.settings.bits = 3;
  options_.settings.group_size = 48;
  EXPECT_NE(
      Convert(*source_, out_, options_).status().message().find("group size: expected one of"),
      std::string::npos);
}

TEST_F(ConvertTest, GroupsThatFitNoRowAreRefused) {
  options_.settings.group_size = 128;  // rows of 64 and 128: only down_proj fits
  const auto report = Convert(*source_, out_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->quantized_matrices, 8);  // o_proj and down_proj read 128 columns
  EXPECT_EQ(report->warnings.size(), 21u);
}

TEST_F(ConvertTest, CopiesDocumentsAndWritesACard) {
  const std::string source = out_ + "_source";
  std::filesystem::remove_all(source);
  std::filesystem::create_directories(source);
  std::filesystem::copy(TQ_TEST_DATA "/models/llama/config.json", source);
  std::filesystem::copy(TQ_TEST_DATA "/models/llama/model.safetensors", source);
  const std::string card = "---\nlicense: mit\n---\n# Llama\nAbout the original.\n";
  for (const char* name : {"LICENSE", "modeling_llama.py", "generation_config.json"}) {
    ASSERT_TRUE(WriteFile(source + "/" + name, "{}").ok());
  }
  ASSERT_TRUE(WriteFile(source + "/README.md", card).ok());
  const auto opened = OpenSource(source);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(Convert(**opened, out_, options_).ok());
  for (const char* name : {"LICENSE", "modeling_llama.py", "generation_config.json"}) {
    EXPECT_EQ(*ReadTextFile(out_ + "/" + name), "{}") << name;
  }
  const std::string written = *ReadTextFile(out_ + "/README.md");
  EXPECT_TRUE(written.starts_with("---\nlicense: mit\n---\n# ")) << written;
  EXPECT_NE(written.find("_source-tq3-g64\n"), std::string::npos) << written;
  EXPECT_EQ(written.find("About the original"), std::string::npos) << written;
  std::filesystem::remove_all(source);
}

TEST_F(ConvertTest, KeptFloatsTakeTheAskedType) {
  options_.dtype = DType::kF32;
  options_.settings.affine_extras = AffineSpec{4, 64};
  ASSERT_TRUE(Convert(*source_, out_, options_).ok());
  const auto written = OpenSource(out_);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ((*written)->Find("model.norm.weight")->dtype, DType::kF32);
  EXPECT_EQ((*written)->Find("model.embed_tokens.scales")->dtype, DType::kF32);
  EXPECT_EQ((*written)->Find("lm_head.scales")->dtype, DType::kF16);  // TurboQuant's own
}

// What float16 cannot hold is an error, not an infinity.
TEST_F(ConvertTest, Float16Overflows) {
  const std::string folder = out_ + "_large";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::filesystem::copy(TQ_TEST_DATA "/models/llama/config.json", folder);
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const SourceTensor& tensor : source_->tensors()) {
    const bool norm = tensor.name == "model.norm.weight";
    tensors.push_back({tensor.name, norm ? DType::kF32 : tensor.dtype, tensor.shape});
  }
  auto writer = SafetensorsWriter::Create(folder + "/model.safetensors", tensors, {});
  ASSERT_TRUE(writer.ok());
  for (const SourceTensor& tensor : source_->tensors()) {
    const std::vector<float> large(static_cast<size_t>(NumElements(tensor.shape)), 1e6f);
    const bool norm = tensor.name == "model.norm.weight";
    ASSERT_TRUE((*writer)
                    ->Append(tensor.name,
                             norm ? std::as_bytes(std::span<const float>(large)) : tensor.bytes)
                    .ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto source = OpenSource(folder);
  ASSERT_TRUE(source.ok());
  options_.dtype = DType::kF16;
  const Status status = Convert(**source, out_, options_).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_NE(status.message().find("model.norm.weight: expected values below 65504"),
            std::string::npos)
      << status.message();
  EXPECT_FALSE(IsDirectory(out_));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tq

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "weights/gguf_container.h"
#include "weights/gguf_translate.h"
#include "weights/safetensors.h"
#include "weights/source.h"

namespace tq {
namespace {

const std::string kModels = TQ_TEST_DATA "/gguf/models/";

std::unique_ptr<WeightSource> MustOpen(const std::string& path) {
  auto source = OpenSource(path);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() ? std::move(*source) : nullptr;
}

Json Document(const WeightSource& source, const std::string& name) {
  const auto text = source.ReadDocument(name);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return *ParseJson(*text, name);
}

// The file holds the first four rows of the tensor.
void ExpectRows(const SourceTensor& expected, const std::vector<float>& values,
                const std::string& name) {
  ASSERT_GE(values.size() * sizeof(float), expected.bytes.size()) << name;
  EXPECT_EQ(std::memcmp(values.data(), expected.bytes.data(), expected.bytes.size()), 0) << name;
}

// gguf.TENSOR rows against the container, hf.TENSOR rows against the translation.
void CheckRows(const std::string& model) {
  SCOPED_TRACE(model);
  const auto source = MustOpen(kModels + model + ".gguf");
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->container(), "gguf");
  const auto mapped = MappedFile::Open(kModels + model + ".expected.safetensors");
  const auto gguf_mapped = MappedFile::Open(kModels + model + ".gguf");
  ASSERT_TRUE(mapped.ok() && gguf_mapped.ok());
  const auto expected = ParseSafetensors((*mapped)->bytes(), model);
  const auto container = ParseGguf((*gguf_mapped)->bytes(), model);
  ASSERT_TRUE(expected.ok() && container.ok());
  int stored = 0;
  int translated = 0;
  for (const SourceTensor& tensor : expected->tensors) {
    if (tensor.name.starts_with("gguf.")) {
      const auto info =
          std::find_if(container->tensors.begin(), container->tensors.end(),
                       [&](const GgufTensorInfo& i) { return i.name == tensor.name.substr(5); });
      if (info == container->tensors.end()) continue;  // in another file of a split
      ExpectRows(tensor, *ReadGgufFloats(*info, model), tensor.name);
      ++stored;
    } else if (tensor.name.starts_with("hf.")) {
      const SourceTensor* found = source->Find(tensor.name.substr(3));
      ASSERT_NE(found, nullptr) << tensor.name;
      ExpectRows(tensor, *ReadFloats(*found), tensor.name);
      ++translated;
    }
  }
  EXPECT_GE(stored, 8);
  if (model.starts_with("llama")) {
    EXPECT_EQ(translated, 4);  // q and k of two layers
  }
  if (model.starts_with("gemma3")) {
    EXPECT_EQ(translated, 6 * 6 + 1);  // four norms, q_norm and k_norm of six layers, and the last
  }
}

TEST(GgufSource, LlamaRowsInEveryFormat) {
  for (const char* type :
       {"BF16", "F16", "F32", "IQ4_NL", "IQ4_XS", "MXFP4", "Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K",
        "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0", "TQ1_0", "TQ2_0"}) {
    CheckRows(std::string("llama/") + type);
  }
}

TEST(GgufSource, RowsOfOtherArchitectures) {
  for (const char* model :
       {"qwen2/mix-Q2_K", "qwen2/mix-Q4_K_M", "qwen2/F16", "qwen3/BF16", "qwen3/mix-Q3_K_L",
        "qwen3/mix-Q5_K_M", "gemma3/F16", "gemma3/mix-Q4_K_S", "gemma3/mix-Q8_0"}) {
    CheckRows(model);
  }
}

TEST(GgufSource, SplitsAreOneModelWhicheverIsNamed) {
  CheckRows("llama/split-00001-of-00003");
  const auto whole = MustOpen(kModels + "llama/F16.gguf");
  for (const char* name : {"llama/split-00001-of-00003.gguf", "llama/split-00003-of-00003.gguf"}) {
    const auto split = MustOpen(kModels + name);
    ASSERT_NE(split, nullptr);
    ASSERT_EQ(split->tensors().size(), whole->tensors().size());
    for (size_t i = 0; i < whole->tensors().size(); ++i) {
      const SourceTensor& a = whole->tensors()[i];
      const SourceTensor& b = split->tensors()[i];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.shape, b.shape);
      EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()));
      split->DropPages(b);
    }
    EXPECT_EQ(Document(*split, "config.json"), Document(*whole, "config.json"));
  }
}

TEST(GgufSource, SplitsMustBeComplete) {
  const std::string folder = testing::TempDir() + "/gguf_split_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto copy = [&](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(kModels + "llama/" + from, folder + "/" + to,
                               std::filesystem::copy_options::overwrite_existing);
  };
  copy("split-00001-of-00003.gguf", "m-00001-of-00003.gguf");
  copy("split-00003-of-00003.gguf", "m-00003-of-00003.gguf");
  const auto refusal = [&](const char* name) {
    const auto source = OpenSource(folder + "/" + name);
    return source.ok() ? "accepted" : source.status().message();
  };
  EXPECT_NE(refusal("m-00001-of-00003.gguf").find("m-00002-of-00003.gguf: missing"),
            std::string::npos);
  copy("split-00003-of-00003.gguf", "m-00002-of-00003.gguf");
  EXPECT_NE(refusal("m-00001-of-00003.gguf").find("split.no"), std::string::npos);
  copy("split-00001-of-00003.gguf", "single.gguf");
  EXPECT_NE(refusal("single.gguf").find("split.count"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(GgufSource, TensorsHaveHuggingFaceNamesAndShapes) {
  const auto source = MustOpen(kModels + "llama/Q4_K.gguf");
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->tensors().size(), 21u);  // rope_freqs became part of config.json
  const SourceTensor* down = source->Find("model.layers.1.mlp.down_proj.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, (Shape{256, 512}));
  EXPECT_TRUE(down->is_float_like);
  EXPECT_EQ(down->codec, CodecId::kQ4K);
  EXPECT_EQ(MatrixView(*down).row_bytes, 288);
  EXPECT_EQ(MatrixView(*down).format.bits, 4);
  EXPECT_NE(source->Find("lm_head.weight"), nullptr);
  EXPECT_EQ(source->Find("model.norm.weight")->dtype, DType::kF32);
}

// What the fixture's own config.json says in Hugging Face terms, as far as the file can say it.
void CheckConfig(const std::string& folder, const std::string& name) {
  SCOPED_TRACE(folder);
  const auto source = MustOpen(kModels + folder + "/" + name + ".gguf");
  ASSERT_NE(source, nullptr);
  const Json config = Document(*source, "config.json");
  const auto text = ReadTextFile(kModels + folder + "/config.json");
  ASSERT_TRUE(text.ok());
  const Json expected = *ParseJson(*text, folder);
  for (const auto& [key, value] : expected.items()) {
    if (key == "rope_parameters") continue;
    EXPECT_EQ(config.value(key, Json()), value) << key;
  }
}

TEST(GgufSource, ConfigsSayWhatTheOriginalsSay) {
  CheckConfig("llama", "Q8_0");
  CheckConfig("qwen2", "F16");
  CheckConfig("qwen3", "BF16");
  CheckConfig("gemma3", "F16");

  const Json llama = Document(*MustOpen(kModels + "llama/Q8_0.gguf"), "config.json");
  EXPECT_EQ(llama["rope_theta"], 500000.0);
  EXPECT_EQ(llama["rope_scaling"]["rope_type"], "tq_factors");
  EXPECT_EQ(llama["rope_scaling"]["factors"].size(), 32u);
  EXPECT_EQ(llama["rope_scaling"]["factors"][0], 1.0);
  EXPECT_EQ(llama["attention_bias"], false);
  EXPECT_EQ(llama["bos_token_id"], 1);
  const Json qwen2 = Document(*MustOpen(kModels + "qwen2/F16.gguf"), "config.json");
  EXPECT_EQ(
      qwen2["rope_scaling"],
      Json({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}}));
  const Json qwen3 = Document(*MustOpen(kModels + "qwen3/BF16.gguf"), "config.json");
  EXPECT_EQ(qwen3["rope_scaling"], Json({{"rope_type", "linear"}, {"factor", 4.0}}));
  const Json gemma = Document(*MustOpen(kModels + "gemma3/F16.gguf"), "config.json");
  EXPECT_EQ(gemma["rope_theta"], 1000000.0);
  EXPECT_EQ(gemma["rope_local_base_freq"], 10000.0);
}

TEST(GgufSource, UnknownArchitecturesListTheKnownOnes) {
  const auto source = OpenSource(TQ_TEST_DATA "/gguf/bad/unknown_architecture.gguf");
  EXPECT_EQ(source.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(source.status().message().find("gemma3, llama, qwen2, qwen3"), std::string::npos);
}

}  // namespace
}  // namespace tq

// Checkpoints that do not fit their config.json: each is refused with one line that names the
// tensor.
#include <cstring>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "model/model.h"
#include "weights/safetensors_writer.h"

namespace tq {
namespace {

struct TensorData {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<float> values;
};
using Tensors = std::map<std::string, TensorData>;

constexpr const char* kConfig = R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 32,
  "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
  "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "tie_word_embeddings": true})";

class LoadTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tq_load_test_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const Json config = *ParseJson(kConfig, "config.json");
    for (const TensorNeed& need : NeededTensors(*ParseModelSpec(config, {}))) {
      TensorData data;
      data.shape = need.shape;
      data.values.assign(static_cast<size_t>(NumElements(need.shape)), 0.25f);
      tensors_[need.name] = data;
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Load() {
    std::vector<SafetensorsWriter::Tensor> declared;
    for (const auto& [name, data] : tensors_) declared.push_back({name, data.dtype, data.shape});
    auto writer = SafetensorsWriter::Create(folder_ + "/model.safetensors", declared, {});
    TQ_CHECK(writer.ok());
    for (const auto& [name, data] : tensors_) {
      TQ_CHECK((*writer)->Append(name, std::as_bytes(std::span<const float>(data.values))).ok());
    }
    TQ_CHECK((*writer)->Finish().ok());
    TQ_CHECK(WriteFile(folder_ + "/config.json", config_).ok());
    auto source = OpenSource(folder_);
    if (!source.ok()) return source.status().message();
    auto backend =
        MakeBackend("ref", {.num_threads = 1, .activations = ActivationMode::kF32, .isa = ""});
    TQ_CHECK(backend.ok());
    const auto model = Model::Load(**source, **backend);
    return model.ok() ? "" : model.status().message();
  }

  std::string folder_;
  std::string config_ = kConfig;
  Tensors tensors_;
};

TEST_F(LoadTest, GoodOneLoads) { EXPECT_EQ(Load(), ""); }

TEST_F(LoadTest, MissingTensor) {
  tensors_.erase("model.layers.0.mlp.up_proj.weight");
  EXPECT_NE(Load().find("tensor model.layers.0.mlp.up_proj.weight is missing from "),
            std::string::npos);
}

TEST_F(LoadTest, UnusedTensor) {
  tensors_["model.layers.1.mlp.up_proj.weight"] = tensors_["model.layers.0.mlp.up_proj.weight"];
  EXPECT_NE(Load().find("found 1 more: model.layers.1.mlp.up_proj.weight"), std::string::npos);
}

TEST_F(LoadTest, ShapeContradictsConfig) {
  TensorData& data = tensors_["model.layers.0.self_attn.k_proj.weight"];
  data.shape = {32, 32};
  data.values.resize(32 * 32);
  EXPECT_NE(Load().find("tensor model.layers.0.self_attn.k_proj.weight: expected [16, 32] from "
                        "config.json, found [32, 32]"),
            std::string::npos);
}

TEST_F(LoadTest, WrongType) {
  tensors_["model.layers.0.self_attn.q_proj.weight"].dtype = DType::kI32;
  EXPECT_NE(Load().find("expected F32, F16, BF16 or a supported block format, found I32"),
            std::string::npos);
}

TEST_F(LoadTest, NanAndInfinity) {
  tensors_["model.layers.0.mlp.down_proj.weight"].values[77] = NAN;
  EXPECT_EQ(
      Load(),
      "tensor model.layers.0.mlp.down_proj.weight: expected finite weights, found NaN or infinity");
  tensors_["model.layers.0.mlp.down_proj.weight"].values[77] = 1;
  tensors_["model.norm.weight"].values[3] = INFINITY;
  EXPECT_EQ(Load(), "tensor model.norm.weight: expected finite weights, found NaN or infinity");
}

TEST_F(LoadTest, TiedModelMayCarryACopyOfItsHead) {
  tensors_["lm_head.weight"] = tensors_["model.embed_tokens.weight"];
  EXPECT_EQ(Load(), "");
}

TEST_F(LoadTest, MalformedConfig) {
  config_ = "{\"model_type\": \"llama\",";
  EXPECT_NE(Load().find("config.json: malformed JSON at line 1"), std::string::npos);
}

}  // namespace
}  // namespace tq

// Every architecture converts; and the converted model, read as TurboQuant, computes what a float
// checkpoint of its dequantized weights computes.
#include "quantize/convert.h"

#include <filesystem>
#include <ostream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "support/checkpoint.h"
#include "weights/matrix_tensors.h"
#include "weights/safetensors_writer.h"

namespace tq::test {
namespace {

struct Conversion {
  std::string name;   // of the test
  std::string model;  // in models/
  ConvertOptions options;
  friend void PrintTo(const Conversion& conversion, std::ostream* out) { *out << conversion.name; }
};

class ConvertModel : public testing::TestWithParam<Conversion> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tq_convert_model_" + GetParam().name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/float");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The same checkpoint with every matrix as f32.
  void WriteDequantized(const WeightSource& source) {
    const Json config = *ParseJson(*source.ReadDocument("config.json"), "config.json");
    const ModelSpec spec = *ParseModelSpec(config, source.facts());
    const bool rotates = config["quantization"]["rotation"] != "none";
    std::vector<SafetensorsWriter::Tensor> tensors;
    std::vector<std::vector<std::byte>> values;
    for (const TensorNeed& need : NeededTensors(spec, &source)) {
      const SourceTensor* stored = source.Find(need.name);
      ASSERT_NE(stored, nullptr) << need.name;
      SafetensorsWriter::Tensor tensor = {need.name, DType::kF32, need.shape};
      std::vector<std::byte> bytes;
      if (stored->dtype == DType::kI64) {
        tensor.dtype = DType::kI64;
        bytes.assign(stored->bytes.begin(), stored->bytes.end());
      } else {
        const std::string path = need.name.substr(0, need.name.rfind(".weight"));
        const bool matrix = need.shape.size() == 2 && need.name.ends_with(".weight");
        std::vector<float> floats;
        if (matrix) {
          const auto read = ReadMatrix(source, path, need.shape[0], need.shape[1], rotates);
          ASSERT_TRUE(read.ok()) << read.status().message();
          floats = MatrixFloats(read->matrix);
        } else {
          floats = *ReadFloats(*stored);
          // The float checkpoint is of the other kind: norms without the one, convolutions [C, 1,
          // K].
          const bool folded = source.facts().norms_include_one && need.role == TensorRole::kNorm &&
                              !need.name.ends_with("linear_attn.norm.weight");
          for (float& x : floats) x -= folded ? 1.0f : 0.0f;
        }
        const auto view = std::as_bytes(std::span<const float>(floats));
        bytes.assign(view.begin(), view.end());
      }
      if (need.name.ends_with("conv1d.weight")) tensor.shape.insert(tensor.shape.begin() + 1, 1);
      tensors.push_back(tensor);
      values.push_back(std::move(bytes));
    }
    auto writer = SafetensorsWriter::Create(folder_ + "/float/model.safetensors", tensors, {});
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    for (size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_TRUE((*writer)->Append(tensors[i].name, values[i]).ok());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    Json plain = config;
    plain.erase("quantization");
    plain.erase("quantization_config");
    ASSERT_TRUE(WriteFile(folder_ + "/float/config.json", plain.dump()).ok());
  }

  std::vector<float> LogitsOf(const std::string& path) {
    const TensorFile expected(TQ_TEST_DATA "/models/" + GetParam().model + "/expected.safetensors");
    const bool text = expected.Find("text_tokens") != nullptr;
    const auto loaded =
        LoadOn(path, "", {.num_threads = 2, .activations = ActivationMode::kF32, .isa = ""});
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return loaded.ok() ? Logits(*loaded, expected.Ids(text ? "text_tokens" : "tokens"))
                       : std::vector<float>();
  }

  std::string folder_;
};

TEST_P(ConvertModel, ComputesWhatItsDequantizedWeightsCompute) {
  const auto source = OpenSource(TQ_TEST_DATA "/models/" + GetParam().model);
  ASSERT_TRUE(source.ok()) << source.status().message();
  ConvertOptions options = GetParam().options;
  options.num_threads = 2;
  const auto report = Convert(**source, folder_ + "/tq", options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto converted = OpenSource(folder_ + "/tq");
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  WriteDequantized(**converted);
  if (HasFatalFailure()) return;
  const std::vector<float> got = LogitsOf(folder_ + "/tq");
  const std::vector<float> want = LogitsOf(folder_ + "/float");
  ASSERT_EQ(got.size(), want.size());
  ASSERT_FALSE(want.empty());
  // Rotating the activation and not the weight moves the last bits only; kimi_k3 amplifies them.
  EXPECT_LE(MaxDifference(got, want), 5e-4 * StandardDeviation(want));
}

std::vector<Conversion> EveryArchitecture() {
  std::vector<Conversion> out;
  for (const char* model :
       {"deepseek_v2", "deepseek_v3",      "deepseek_v3_fp8", "gemma4_text",    "glm4_moe",
        "gpt_oss",     "gpt_oss_mxfp4",    "kimi_k3",         "kimi_k3_mlx",    "kimi_linear",
        "laguna",      "muse_glimmer",     "nemotron_h",      "nemotron_h_moe", "qwen2_moe",
        "qwen3_5",     "qwen3_5_moe_text", "qwen3_moe",       "qwen3_next",     "qwen4_exp_text",
        "sarvam_moe"}) {
    Conversion conversion = {model, model, {}};
    conversion.options.settings = {.bits = 4, .group_size = 32};
    out.push_back(std::move(conversion));
  }
  return out;
}

// What the settings beyond bits and groups write.
std::vector<Conversion> EverySetting() {
  std::vector<Conversion> out;
  const auto add = [&](const char* model, const char* name, auto change) {
    Conversion conversion = {std::string(model) + "_" + name, model, {}};
    conversion.options.settings = {.bits = 3, .group_size = 32};
    change(conversion.options, conversion.options.settings);
    out.push_back(std::move(conversion));
  };
  using Options = ConvertOptions;
  using Settings = QuantizeSettings;
  add("qwen3_moe", "trits_down4", [](Options&, Settings& s) {
    s.ternary_experts = true;
    s.expert_down_bits = 4;
  });
  add("gpt_oss", "trits", [](Options&, Settings& s) { s.ternary_experts = true; });
  add("qwen3_moe", "tiers", [](Options&, Settings& s) {
    s.expert_layer_tiers = {{0, 3}, {1, 4}, {3, 16}};
  });
  add("glm4_moe", "protected", [](Options&, Settings& s) {
    s.mlp_bits = 2;
    s.protected_expert_layers = {2};
    s.protect_bits = 4;
  });
  add("llama", "extras", [](Options&, Settings& s) {
    s.group_size = 128;
    s.affine_extras = AffineSpec{4, 64};
  });
  add("gemma3_text", "extras", [](Options&, Settings& s) { s.affine_extras = AffineSpec{8, 32}; });
  add("deepseek_v3", "extras", [](Options&, Settings& s) { s.affine_extras = AffineSpec{8, 32}; });
  add("deepseek_v3_fp8", "extras", [](Options&, Settings& s) {
    s.affine_extras = AffineSpec{3, 32};
  });
  add("qwen4_exp_text", "extras", [](Options&, Settings& s) {
    s.affine_extras = AffineSpec{4, 32};
  });
  add("qwen3_moe", "affine_experts", [](Options&, Settings& s) {
    s.mlp_group_size = 128;
    s.affine_extras = AffineSpec{2, 64};
  });
  add("llama", "residual", [](Options&, Settings& s) { s.use_qjl = true; });
  add("qwen3_moe", "residual", [](Options&, Settings& s) { s.use_qjl = true; });
  add("qwen2", "residual_unrotated", [](Options&, Settings& s) {
    s.use_qjl = true;
    s.rotation = "none";
    s.rotate = false;
  });
  add("llama", "one_bit_mlp", [](Options&, Settings& s) { s.mlp_bits = 1; });
  add("llama", "float16", [](Options& o, Settings& s) {
    o.dtype = DType::kF16;
    s.affine_extras = AffineSpec{4, 64};
  });
  add("nemotron_h", "float32", [](Options& o, Settings&) { o.dtype = DType::kF32; });
  return out;
}

std::string ConversionName(const testing::TestParamInfo<Conversion>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Architecture, ConvertModel, testing::ValuesIn(EveryArchitecture()),
                         ConversionName);
INSTANTIATE_TEST_SUITE_P(Setting, ConvertModel, testing::ValuesIn(EverySetting()), ConversionName);

}  // namespace
}  // namespace tq::test

// Every checkpoint that the reference converter wrote and whose source is kept: converting that
// source with the flags of the reference's own command gives the same tensors, byte for byte, and
// the same quantization block in config.json.
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "quantize/convert.h"
#include "quantize/expert_layers.h"
#include "support/checkpoint.h"
#include "weights/safetensors_writer.h"

namespace tq::test {
namespace {

const std::string kFolders = TQ_TEST_DATA "/turboquant";

// Fixtures that are read but not reproduced, and why.
const std::map<std::string, std::string> kNotReproduced = {
    {"dense_blocks", "its source is not kept"},
    {"dense_m28_m12", "its source is not kept"},
    {"legacy_ternary4", "the older codebook of trits is read, not written"},
    {"vlm_diffusion_gemma", "vision towers are not converted"},
    {"vlm_muse_glimmer", "vision towers are not converted"},
    {"vlm_qwen3_5", "vision towers are not converted"},
    {"vlm_qwen3_5_moe", "vision towers are not converted"},
};

// Tensors that the reference made from another source: a dense layer that was replaced by experts.
bool IsOfAnotherSource(const std::string& fixture, const std::string& name) {
  return fixture == "moe_extras4" && name.starts_with("model.layers.1.mlp.");
}

Json ReadJson(const std::string& path) {
  const auto text = ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *ParseJson(*text, path) : Json();
}

// The flags of a fixture's command. An unknown flag fails the test.
ConvertOptions OptionsOf(const Json& meta) {
  ConvertOptions options;
  options.rounding = Rounding::kRms;
  QuantizeSettings& settings = options.settings;
  const std::string command = meta["command"].get<std::string>();
  std::istringstream words(command.substr(command.find("OUT") + 3));
  std::string flag;
  const auto number = [&] {
    int value = 0;
    words >> value;
    return value;
  };
  const auto word = [&] {
    std::string value;
    words >> value;
    return value;
  };
  AffineSpec extras;
  while (words >> flag) {
    if (flag == "-b") {
      settings.bits = number();
    } else if (flag == "-g") {
      settings.group_size = number();
    } else if (flag == "--attn-bits") {
      settings.attn_bits = number();
    } else if (flag == "--mlp-bits") {
      settings.mlp_bits = number();
    } else if (flag == "--mlp-group-size") {
      settings.mlp_group_size = number();
    } else if (flag == "--rotation") {
      settings.rotation = word();
      settings.rotate = settings.rotation != "none";
    } else if (flag == "--rotation-seed") {
      settings.rotation_seed = static_cast<uint64_t>(number());
    } else if (flag == "--use-qjl") {
      settings.use_qjl = true;
    } else if (flag == "--ternary-experts") {
      settings.ternary_experts = true;
    } else if (flag == "--expert-down-bits") {
      settings.expert_down_bits = number();
    } else if (flag == "--protect-expert-layers") {
      settings.protected_expert_layers = *ParseLayerList(word());
    } else if (flag == "--protect-bits") {
      settings.protect_bits = number();
    } else if (flag == "--expert-layer-tiers") {
      word();
      settings.expert_layer_tiers = *ParseExpertLayerTiers(meta["tiers"].dump(), "tiers");
    } else if (flag == "--quantize-extras") {
      settings.affine_extras = extras;
    } else if (flag == "--extras-bits") {
      settings.affine_extras->bits = number();
    } else if (flag == "--extras-group-size") {
      settings.affine_extras->group = number();
    } else if (flag == "--keep-mtp") {
      options.keep_mtp = true;
    } else {
      EXPECT_EQ(flag, "--streaming");
    }
  }
  const Json& overrides = meta["api_overrides"];
  if (overrides.is_object()) settings.mlp_bits = overrides["mlp_bits"].get<int>();
  return options;
}

// Name -> tensor of all files of a folder.
class Tensors {
 public:
  explicit Tensors(const std::string& folder) {
    const auto names = ListDirectory(folder);
    for (const std::string& name : *names) {
      if (!name.starts_with("model") || !name.ends_with(".safetensors")) continue;
      files_.push_back(std::make_unique<TensorFile>(folder + "/" + name));
      for (const SourceTensor& tensor : files_.back()->tensors()) {
        tensors_[tensor.name] = &tensor;
        file_of_[tensor.name] = name;
      }
    }
  }
  const std::map<std::string, const SourceTensor*>& all() const { return tensors_; }
  const std::map<std::string, std::string>& files() const { return file_of_; }

 private:
  std::vector<std::unique_ptr<TensorFile>> files_;
  std::map<std::string, const SourceTensor*> tensors_;
  std::map<std::string, std::string> file_of_;
};

class ConvertBytes : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    work_ = testing::TempDir() + "tq_convert_bytes_" + GetParam();
    std::filesystem::remove_all(work_);
    std::filesystem::create_directories(work_);
  }
  void TearDown() override { std::filesystem::remove_all(work_); }

  // The source with the draft head that the fixture kept, under its original names.
  std::string WithDraftHead(const std::string& model) {
    const std::string folder = work_ + "/source";
    std::filesystem::create_directories(folder);
    std::filesystem::copy(model + "/config.json", folder);
    std::filesystem::copy(model + "/model.safetensors", folder);
    const TensorFile head(kFolders + "/" + GetParam() + "/model-mtp.safetensors");
    std::vector<SafetensorsWriter::Tensor> tensors;
    const auto source_name = [](const SourceTensor& tensor) {
      return "mtp." + tensor.name.substr(tensor.name.find('.') + 1);
    };
    for (const SourceTensor& tensor : head.tensors()) {
      tensors.push_back({source_name(tensor), tensor.dtype, tensor.shape});
    }
    auto writer = SafetensorsWriter::Create(folder + "/model-head.safetensors", tensors, {});
    EXPECT_TRUE(writer.ok());
    for (const SourceTensor& tensor : head.tensors()) {
      EXPECT_TRUE((*writer)->Append(source_name(tensor), tensor.bytes).ok());
    }
    EXPECT_TRUE((*writer)->Finish().ok());
    return folder;
  }

  std::string work_;
};

TEST_P(ConvertBytes, AreTheReferences) {
  const auto excuse = kNotReproduced.find(GetParam());
  if (excuse != kNotReproduced.end()) GTEST_SKIP() << excuse->second;
  const std::string folder = kFolders + "/" + GetParam();
  const Json meta = ReadJson(folder + "/meta.json");
  ConvertOptions options = OptionsOf(meta);
  options.num_threads = 2;
  std::string model = TQ_TEST_DATA "/models/" + meta["source"].get<std::string>();
  if (options.keep_mtp) model = WithDraftHead(model);
  const auto source = OpenSource(model);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const auto report = Convert(**source, work_ + "/out", options);
  ASSERT_TRUE(report.ok()) << report.status().message();

  const Tensors ours(work_ + "/out");
  const Tensors theirs(folder);
  for (const auto& [name, tensor] : ours.all()) {
    EXPECT_TRUE(theirs.all().contains(name) || IsOfAnotherSource(GetParam(), name))
        << name << " is not the reference's";
  }
  for (const auto& [name, want] : theirs.all()) {
    if (IsOfAnotherSource(GetParam(), name)) continue;
    const auto found = ours.all().find(name);
    if (found == ours.all().end()) {
      ADD_FAILURE() << name << " is missing";
      continue;
    }
    const SourceTensor& got = *found->second;
    EXPECT_EQ(got.dtype, want->dtype) << name;
    EXPECT_EQ(got.shape, want->shape) << name;
    ASSERT_EQ(got.bytes.size(), want->bytes.size()) << name;
    EXPECT_EQ(std::memcmp(got.bytes.data(), want->bytes.data(), want->bytes.size()), 0) << name;
  }

  const Json config = ReadJson(work_ + "/out/config.json");
  EXPECT_EQ(config["quantization"], config["quantization_config"]);
  if (!meta["legacy_edit"].is_null()) return;  // its config is that of an older release
  EXPECT_EQ(config["quantization"], ReadJson(folder + "/config.json")["quantization"]);
  // Our index names every tensor and its file.
  const Json map = ReadJson(work_ + "/out/model.safetensors.index.json")["weight_map"];
  EXPECT_EQ((map.get<std::map<std::string, std::string>>()), ours.files());
}

std::string FolderName(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, ConvertBytes, testing::ValuesIn(FolderNames(kFolders)), FolderName);

}  // namespace
}  // namespace tq::test

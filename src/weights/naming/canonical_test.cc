// Published checkpoints of every writer come out under one set of names, with the same values.
#include "weights/naming/canonical.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tensor/half.h"
#include "weights/checkpoint_facts.h"
#include "weights/safetensors.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Folders(const std::string& archive) {
  std::vector<std::string> out;
  const std::string root = TQ_TEST_DATA "/" + archive;
  if (!fs::is_directory(root)) return out;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "config.json")) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string Path(const std::string& name) { return TQ_TEST_DATA "/" + name; }

// A folder's tensors and the files that they must lie in.
struct Folder {
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<SourceTensor> stored;
  std::vector<SourceTensor> canonical;
};

Folder ReadFolder(const std::string& path) {
  Folder out;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("model") || !name.ends_with(".safetensors")) continue;
    auto file = MappedFile::Open(entry.path().string());
    TQ_CHECK(file.ok());
    auto parsed = ParseSafetensors((*file)->bytes(), name);
    TQ_CHECK(parsed.ok());
    out.files.push_back(*file);
    out.stored.insert(out.stored.end(), parsed->tensors.begin(), parsed->tensors.end());
  }
  std::sort(out.stored.begin(), out.stored.end(),
            [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
  const Json config = *ParseJson(*ReadTextFile(path + "/config.json"), "config.json");
  out.canonical = out.stored;
  const Status status = CanonicalizeTensors(config.value("model_type", ""), path, out.canonical);
  EXPECT_EQ(status.message(), "");
  return out;
}

const SourceTensor* Find(const std::vector<SourceTensor>& tensors, const std::string& name) {
  const auto it = std::find_if(tensors.begin(), tensors.end(),
                               [&](const SourceTensor& t) { return t.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

// Bytes from the first to the last value, by shape and pitches.
int64_t Extent(const SourceTensor& tensor) {
  const auto value = static_cast<int64_t>(DTypeBytes(tensor.dtype));
  if (tensor.dense()) return NumElements(tensor.shape) * value;
  const int64_t cols = tensor.shape.back();
  const int64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  const int64_t value_pitch = tensor.value_pitch != 0 ? tensor.value_pitch : value;
  return (rows - 1) * tensor.row_pitch + (cols - 1) * value_pitch + value;
}

bool InAFile(const Folder& folder, const SourceTensor& tensor) {
  for (const auto& file : folder.files) {
    const std::span<const std::byte> all = file->bytes();
    if (tensor.bytes.data() >= all.data() &&
        tensor.bytes.data() + tensor.bytes.size() <= all.data() + all.size()) {
      return true;
    }
  }
  return false;
}

TEST(CanonicalNames, EveryFolderHasUniqueNamesOfBytesInItsFiles) {
  for (const char* archive : {"models", "mlx", "turboquant"}) {
    for (const std::string& path : Folders(archive)) {
      const Folder folder = ReadFolder(path);
      std::set<std::string> names;
      for (const SourceTensor& tensor : folder.canonical) {
        EXPECT_TRUE(names.insert(tensor.name).second) << path << ": " << tensor.name;
        EXPECT_TRUE(InAFile(folder, tensor)) << path << ": " << tensor.name;
        EXPECT_EQ(Extent(tensor), static_cast<int64_t>(tensor.bytes.size())) << tensor.name;
        const bool known = tensor.name.starts_with("model.") || tensor.name.starts_with("mtp.") ||
                           tensor.name.starts_with("lm_head.") ||
                           tensor.name.starts_with("vision_");
        EXPECT_TRUE(known) << path << ": " << tensor.name;
        if (tensor.name.starts_with("model.layers.")) {
          EXPECT_LE(tensor.shape.size(), tensor.name.ends_with("A_log") ? 4u : 2u) << tensor.name;
        }
      }
      EXPECT_TRUE(std::is_sorted(
          folder.canonical.begin(), folder.canonical.end(),
          [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; }));
    }
  }
}

TEST(CanonicalNames, AreTheirOwnCanonicalNames) {
  for (const char* archive : {"models", "mlx", "turboquant"}) {
    for (const std::string& path : Folders(archive)) {
      const Folder folder = ReadFolder(path);
      std::vector<SourceTensor> again = folder.canonical;
      const Json config = *ParseJson(*ReadTextFile(path + "/config.json"), "config.json");
      ASSERT_EQ(CanonicalizeTensors(config.value("model_type", ""), path, again).message(), "");
      ASSERT_EQ(again.size(), folder.canonical.size()) << path;
      for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].name, folder.canonical[i].name);
    }
  }
}

// The first values of `whole` that `part` is to equal: MLX test models were cut to fewer experts.
std::vector<float> FloatsOf(const SourceTensor& tensor) {
  auto values = ReadFloats(tensor);
  EXPECT_TRUE(values.ok()) << tensor.name;
  return values.ok() ? std::move(values).value() : std::vector<float>();
}

// Two writings of one model, perhaps with fewer layers and experts in `b`.
struct Pair {
  const char* a;
  const char* b;
  std::vector<int> layers_of_a = {};  // of the layers of b; empty: the same
  bool folded_norms = false;
};

std::string InModelA(const Pair& pair, const std::string& name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers) || pair.layers_of_a.empty()) return name;
  const size_t dot = name.find('.', kLayers.size());
  const int layer = std::stoi(name.substr(kLayers.size(), dot - kLayers.size()));
  return std::string(kLayers) + std::to_string(pair.layers_of_a[static_cast<size_t>(layer)]) +
         name.substr(dot);
}

// Of [heads * (nope + v), rank], heads and rank taken from MLX's per-head form.
void ExpectSplitKvB(const Folder& a, const Folder& b, const Pair& pair, const std::string& layer) {
  const SourceTensor* fused = Find(a.canonical, InModelA(pair, layer) + "kv_b_proj.weight");
  ASSERT_NE(fused, nullptr);
  const std::vector<float> all = FloatsOf(*fused);
  const int64_t rank = fused->shape[1];
  int64_t row = 0;
  for (int head = 0;; ++head) {
    const SourceTensor* key =
        Find(b.canonical, layer + "embed_q." + std::to_string(head) + ".weight");
    if (key == nullptr) break;
    const SourceTensor* value =
        Find(b.canonical, layer + "unembed_out." + std::to_string(head) + ".weight");
    ASSERT_NE(value, nullptr);
    const std::vector<float> k = FloatsOf(*key);
    const std::vector<float> v = FloatsOf(*value);
    const int64_t nope = key->shape[1];
    for (int64_t n = 0; n < nope; ++n, ++row) {
      for (int64_t r = 0; r < rank; ++r) ASSERT_EQ(k[r * nope + n], all[row * rank + r]);
    }
    for (int64_t n = 0; n < value->shape[0]; ++n, ++row) {
      for (int64_t r = 0; r < rank; ++r) ASSERT_EQ(v[n * rank + r], all[row * rank + r]);
    }
  }
  EXPECT_EQ(row, fused->shape[0]);
}

bool IsFoldedNorm(const std::string& name) {
  return name.ends_with("norm.weight") && !name.ends_with("linear_attn.norm.weight");
}

void ExpectSameModel(const Pair& pair) {
  SCOPED_TRACE(pair.b);
  const Folder a = ReadFolder(Path(pair.a));
  const Folder b = ReadFolder(Path(pair.b));
  std::set<std::string> of_a;
  for (const SourceTensor& tensor : b.canonical) {
    if (tensor.name.find(".unembed_out.") != std::string::npos) continue;
    if (const size_t at = tensor.name.find("embed_q."); at != std::string::npos) {
      if (tensor.name.substr(at) == "embed_q.0.weight") {
        ExpectSplitKvB(a, b, pair, tensor.name.substr(0, at));
      }
      continue;
    }
    const std::string name = InModelA(pair, tensor.name);
    of_a.insert(name);
    const SourceTensor* other = Find(a.canonical, name);
    ASSERT_NE(other, nullptr) << name << " of " << pair.b;
    if (!tensor.is_float_like) continue;
    const std::vector<float> x = FloatsOf(*other);
    const std::vector<float> y = FloatsOf(tensor);
    ASSERT_LE(y.size(), x.size()) << name;
    const bool cut = name.find(".gate.") != std::string::npos ||  // rows of the experts left out
                     name.ends_with(".A_log");                    // padded to the head size
    if (!cut) {
      EXPECT_EQ(tensor.shape, other->shape) << name;
    }
    const bool folded = pair.folded_norms && IsFoldedNorm(name);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], folded ? Bf16ToF32(F32ToBf16(1 + x[i])) : x[i]) << name << " " << i;
    }
  }
  // Nothing of a is left out but whole experts and layers, and kv_b_proj.
  for (const SourceTensor& tensor : a.canonical) {
    if (of_a.contains(tensor.name) || tensor.name.find("kv_b_proj") != std::string::npos) continue;
    const std::string layer = tensor.name.substr(0, tensor.name.find('.', 13) + 1);
    const bool layer_in_b = std::any_of(
        of_a.begin(), of_a.end(), [&](const std::string& name) { return name.starts_with(layer); });
    EXPECT_TRUE(!layer_in_b || tensor.name.find(".experts.") != std::string::npos) << tensor.name;
  }
}

TEST(CanonicalNames, MlxAndHuggingFaceGiveTheSameNamesAndValues) {
  const Pair pairs[] = {
      {"models/deepseek_v2", "mlx/plain_deepseek_v2"},
      {"models/deepseek_v3", "mlx/plain_deepseek_v3"},
      {"models/deepseek_v32", "mlx/plain_deepseek_v32"},
      {"models/gemma3_text", "mlx/plain_gemma3_text"},
      {"models/gemma4_text", "mlx/plain_gemma4_text"},
      {"models/glm4_moe", "mlx/plain_glm4_moe"},
      {"models/kimi_linear", "mlx/plain_kimi_linear", {0, 3}},
      {"models/laguna", "mlx/plain_laguna"},
      {"models/llama", "mlx/plain_llama"},
      {"models/nemotron_h", "mlx/plain_nemotron_h"},
      {"models/nemotron_h_moe", "mlx/plain_nemotron_h_moe"},
      {"models/qwen3_moe", "mlx/plain_qwen3_moe"},
      {"models/qwen3_5_text", "mlx/plain_qwen3_5_text", {0, 3}, true},
      {"models/qwen3_5_moe_text", "mlx/plain_qwen3_5_moe_text", {0, 3}, true},
      {"models/qwen3_next", "mlx/plain_qwen3_next", {0, 3}, true},
      {"models/kimi_k3_bf16", "models/kimi_k3_mlx"},
      {"models/kimi_k3_bf16", "models/kimi_k3_mlxlm"},
      {"models/sarvam_moe", "models/sarvam_moe_mlx"},
  };
  for (const Pair& pair : pairs) {
    if (fs::exists(Path(pair.a)) && fs::exists(Path(pair.b))) ExpectSameModel(pair);
  }
}

TEST(CanonicalNames, FoldedNormsAreSeenInTheLayout) {
  const std::pair<const char*, bool> cases[] = {
      {"models/qwen3_next", false},
      {"mlx/plain_qwen3_next", true},
      {"models/qwen3_5", false},
      {"mlx/plain_qwen3_5_text", true},
      {"models/qwen3_5_text", false},
      {"turboquant/hybrid_qwen3_5_mtp", true},
      {"models/qwen4_exp", false},
      {"turboquant/qwen4_exp", true},
      {"models/qwen4_exp_text", false},
      {"mlx/hybrid_q4_g32", true},
      {"turboquant/hybrid_qwen3_next", true},
      {"mlx/plain_nemotron_h", false},
      {"models/gemma3_text", false},
      {"mlx/plain_gemma3_text", false},
  };
  for (const auto& [name, folded] : cases) {
    if (!fs::exists(Path(name))) continue;
    EXPECT_EQ(NormsIncludeOne(ReadFolder(Path(name)).stored), folded) << name;
  }
}

}  // namespace
}  // namespace tq

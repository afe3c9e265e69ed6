// MLX spelling = Hugging Face spelling, bit for bit, for every fixture: its weights are written
// again as mlx-lm would name, stack and fold them, and must give the same logits in both modes.
#include <cstring>
#include <initializer_list>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/checkpoint.h"
#include "support/raw_checkpoint.h"
#include "tensor/half.h"

namespace tq::test {
namespace {

// Every value of the result is one of `from`: source(i) is where the value i comes from.
RawTensor Gather(const RawTensor& from, const std::string& name, const Shape& shape,
                 const std::function<int64_t(int64_t)>& source) {
  RawTensor out{name, from.dtype, shape, {}};
  const size_t size = DTypeBytes(from.dtype);
  out.bytes.resize(static_cast<size_t>(NumElements(shape)) * size);
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    std::memcpy(out.bytes.data() + static_cast<size_t>(i) * size,
                from.bytes.data() + static_cast<size_t>(source(i)) * size, size);
  }
  return out;
}

class ToMlx {
 public:
  explicit ToMlx(RawCheckpoint& raw)
      : raw_(raw),
        type_(raw.config["model_type"].get<std::string>()),
        text_(raw.config.contains("text_config") ? raw.config["text_config"] : raw.config) {}

  void Run() {
    // Text models of mlx-lm come without their towers.
    std::erase_if(raw_.tensors, [](const RawTensor& tensor) {
      return tensor.name.find("visi") != std::string::npos ||
             tensor.name.find("visual.") != std::string::npos;
    });
    if (type_ == "gpt_oss") TransposeGptOssExperts();
    StackExperts();
    const bool splits_heads =
        type_ == "deepseek_v3" || type_ == "deepseek_v32" || type_ == "kimi_linear";
    if (splits_heads) SplitLatentHeads();
    TurnConvolutions();
    const bool hybrid = type_.starts_with("qwen3_5") || type_ == "qwen3_next";
    if (hybrid || type_.starts_with("qwen4_exp")) FoldNorms();
    raw_.Rename([this](const std::string& name) { return NewName(name); });
  }

 private:
  // parent.experts.E.up_proj.weight -> parent.switch_mlp.up_proj.weight [E, rows, cols].
  void StackExperts() {
    const std::map<std::string, std::string> renamed = {
        {"w1", "gate_proj"}, {"w3", "up_proj"}, {"w2", "down_proj"}};
    std::map<std::string, std::map<int, std::string>> stacks;  // new name: old ones by expert
    for (const RawTensor& tensor : raw_.tensors) {
      const size_t at = tensor.name.find(".experts.");
      if (at == std::string::npos) continue;
      const std::string rest = tensor.name.substr(at + 9);
      const size_t dot = rest.find('.');
      if (dot == std::string::npos || rest.find_first_not_of("0123456789") != dot) continue;
      std::string matrix = rest.substr(dot + 1, rest.rfind('.') - dot - 1);
      if (renamed.contains(matrix)) matrix = renamed.at(matrix);
      if (type_ == "nemotron_h") matrix = matrix == "up_proj" ? "fc1" : "fc2";
      stacks[tensor.name.substr(0, at) + ".switch_mlp." + matrix + ".weight"]
            [std::stoi(rest.substr(0, dot))] = tensor.name;
    }
    for (const auto& [stacked, by_expert] : stacks) {
      std::vector<std::string> names;
      for (const auto& [expert, name] : by_expert) names.push_back(name);
      raw_.Stack(names, stacked);
    }
  }

  // gate_up_proj [E, in, 2 I] with alternating columns and down_proj [E, in, out], as matrices of
  // rows.
  void TransposeGptOssExperts() {
    std::vector<RawTensor> added;
    std::set<std::string> gone;
    for (const RawTensor& tensor : raw_.tensors) {
      const size_t at = tensor.name.find(".experts.");
      if (at == std::string::npos) continue;
      gone.insert(tensor.name);
      const std::string parent = tensor.name.substr(0, at + 9);
      const int64_t experts = tensor.shape[0];
      const int64_t last = tensor.shape.back();
      const bool bias = tensor.name.ends_with("_bias");
      const bool pair = tensor.name.find("gate_up") != std::string::npos;
      const int64_t in = bias ? 1 : tensor.shape[1];
      const int64_t out = pair ? last / 2 : last;
      const std::vector<std::string> matrices =
          pair ? std::vector<std::string>{"gate_proj", "up_proj"}
               : std::vector<std::string>{"down_proj"};
      for (size_t m = 0; m < matrices.size(); ++m) {
        const auto source = [&](int64_t i) {
          const int64_t expert = i / (in * out);
          const int64_t row = i / in % out;
          const int64_t col = i % in;
          const int64_t from = pair ? 2 * row + static_cast<int64_t>(m) : row;
          return (expert * in + col) * last + from;
        };
        const Shape shape = bias ? Shape{experts, out} : Shape{experts, out, in};
        added.push_back(
            Gather(tensor, parent + matrices[m] + (bias ? ".bias" : ".weight"), shape, source));
      }
    }
    std::erase_if(raw_.tensors, [&](const RawTensor& t) { return gone.contains(t.name); });
    raw_.tensors.insert(raw_.tensors.end(), added.begin(), added.end());
  }

  // kv_b_proj [H (nope + v), r] -> embed_q [H, r, nope], unembed_out [H, v, r].
  void SplitLatentHeads() {
    const auto nope = text_["qk_nope_head_dim"].get<int64_t>();
    const auto v = text_["v_head_dim"].get<int64_t>();
    std::vector<RawTensor> parted;
    for (const RawTensor& tensor : raw_.tensors) {
      if (!tensor.name.ends_with("kv_b_proj.weight")) {
        parted.push_back(tensor);
        continue;
      }
      const int64_t rank = tensor.shape[1];
      const int64_t heads = tensor.shape[0] / (nope + v);
      const std::string parent = tensor.name.substr(0, tensor.name.rfind("kv_b_proj"));
      parted.push_back(
          Gather(tensor, parent + "embed_q.weight", {heads, rank, nope}, [&](int64_t i) {
            const int64_t head = i / (rank * nope);
            return (head * (nope + v) + i % nope) * rank + i / nope % rank;
          }));
      parted.push_back(
          Gather(tensor, parent + "unembed_out.weight", {heads, v, rank}, [&](int64_t i) {
            const int64_t head = i / (v * rank);
            return (head * (nope + v) + nope) * rank + i % (v * rank);
          }));
    }
    raw_.tensors = std::move(parted);
  }

  void TurnConvolutions() {
    for (RawTensor& tensor : raw_.tensors) {
      if (!tensor.name.ends_with("conv1d.weight")) continue;
      tensor.shape = {tensor.shape[0], tensor.shape[2], tensor.shape[1]};
    }
  }

  // Norms of the 1 + w kind hold the sum; in f32, so that nothing is rounded.
  void FoldNorms() {
    constexpr std::string_view kFolded[] = {
        "input_layernorm.weight",
        "post_attention_layernorm.weight",
        "model.norm.weight",
        "language_model.norm.weight",
        "self_attn.q_norm.weight",
        "self_attn.k_norm.weight",
        "indexer.q_layernorm.weight",
        "indexer.k_layernorm.weight",
        "hc_norm.weight",
        "norm_key.weight",
        "norm_query.weight",
        "norm_conv.weight",
    };
    for (RawTensor& tensor : raw_.tensors) {
      bool folded = false;
      for (const std::string_view end : kFolded) folded = folded || tensor.name.ends_with(end);
      if (!folded) continue;
      std::vector<float> values(static_cast<size_t>(NumElements(tensor.shape)));
      for (size_t i = 0; i < values.size(); ++i) {
        if (tensor.dtype == DType::kBf16) {
          uint16_t bits;
          std::memcpy(&bits, tensor.bytes.data() + 2 * i, 2);
          values[i] = Bf16ToF32(bits);
        } else {
          std::memcpy(&values[i], tensor.bytes.data() + 4 * i, 4);
        }
        values[i] = 1.0f + values[i];
      }
      tensor.dtype = DType::kF32;
      tensor.bytes.assign(reinterpret_cast<const std::byte*>(values.data()),
                          reinterpret_cast<const std::byte*>(values.data() + values.size()));
    }
  }

  std::string NewName(std::string name) const {
    if (type_ == "laguna") {
      name = Replaced(name, "mlp.experts.e_score", "mlp.gate.e_score");
      name = Replaced(name, "mlp.gate.weight", "mlp.gate.proj.weight");
    }
    if (type_ == "kimi_linear") {
      name = Replaced(name, ".block_sparse_moe.", ".mlp.");
      name = Replaced(name, ".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias");
      for (const std::string which : {"q", "k", "v"}) {
        name = Replaced(name, "." + which + "_conv1d.", "." + which + "_conv.conv.");
      }
    }
    if (type_ == "diffusion_gemma") {
      if (name.ends_with("_proj") && name.find(".experts.") != std::string::npos) name += ".weight";
      return name;
    }
    if (type_ == "nemotron_h") return name;
    // As wrapped by mlx-vlm, and by mlx-lm for the types that are wrappers themselves.
    name = Replaced(name, "model.language_model.", "model.");
    return "language_model." + name;
  }

  RawCheckpoint& raw_;
  std::string type_;
  OrderedJson text_;
};

std::vector<float> LogitsIn(std::initializer_list<ActivationMode> modes,
                            const std::string& folder) {
  std::vector<float> out;
  for (const ActivationMode mode : modes) {
    const auto loaded = LoadOn(folder, "", {.num_threads = 1, .activations = mode, .isa = ""});
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    if (!loaded.ok()) return {};
    std::vector<int32_t> ids;
    for (int i = 0; i < 24; ++i) ids.push_back((i * 37) % 313 + 3);
    const std::vector<float> logits = Logits(*loaded, ids);
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

std::vector<float> BothModes(const std::string& folder) {
  return LogitsIn({ActivationMode::kF32, ActivationMode::kInt8}, folder);
}

std::string Models(const std::string& name) { return TQ_TEST_DATA "/models/" + name; }

// Fixtures that are not in Hugging Face's plain form: spellings of MLX themselves (compared below)
// and quantized releases.
const std::set<std::string> kOthers = {"deepseek_v3_fp8", "gpt_oss_mxfp4", "kimi_k3",
                                       "kimi_k3_bf16",    "kimi_k3_mlx",   "kimi_k3_mlxlm",
                                       "sarvam_moe",      "sarvam_moe_mlx"};

std::vector<std::string> PlainFixtures() {
  std::vector<std::string> out;
  for (const std::string& name : FolderNames(TQ_TEST_DATA "/models")) {
    if (!kOthers.contains(name)) out.push_back(name);
  }
  return out;
}

class MlxNames : public testing::TestWithParam<std::string> {};

TEST_P(MlxNames, RewrittenCheckpointGivesTheSameBits) {
  RawCheckpoint raw(Models(GetParam()));
  const std::vector<RawTensor> before = raw.tensors;
  ToMlx(raw).Run();
  std::set<std::string> names;
  for (const RawTensor& tensor : before) names.insert(tensor.name);
  size_t renamed = 0;
  for (const RawTensor& tensor : raw.tensors) renamed += names.contains(tensor.name) ? 0 : 1;
  const bool changed = renamed > 0 || GetParam() == "nemotron_h";  // whose convolutions turned
  EXPECT_TRUE(changed) << "the rewriting changed no name";
  EXPECT_EQ(BothModes(raw.Write("mlx_names_" + GetParam())), BothModes(Models(GetParam())));
}

std::string FolderName(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, MlxNames, testing::ValuesIn(PlainFixtures()), FolderName);

// Fixtures that other programs wrote under both namings, of the same weights.
TEST(MlxPairs, WrittenByOthersGiveTheSameBits) {
  const std::pair<std::string, std::string> pairs[] = {
      {Models("kimi_k3_bf16"), Models("kimi_k3_mlx")},
      {Models("kimi_k3_bf16"), Models("kimi_k3_mlxlm")},
      {Models("sarvam_moe"), Models("sarvam_moe_mlx")},
      {Models("gemma3_text"), TQ_TEST_DATA "/mlx/plain_gemma3_text"},
      {Models("gemma4_text"), TQ_TEST_DATA "/mlx/plain_gemma4_text"},
      {Models("nemotron_h"), TQ_TEST_DATA "/mlx/plain_nemotron_h"}};
  for (const auto& [hf, mlx] : pairs) EXPECT_EQ(BothModes(hf), BothModes(mlx)) << mlx;
  // mxfp4 and its values in bf16: other kernels in the fast mode.
  EXPECT_EQ(LogitsIn({ActivationMode::kF32}, Models("kimi_k3")),
            LogitsIn({ActivationMode::kF32}, Models("kimi_k3_bf16")));
}

}  // namespace
}  // namespace tq::test

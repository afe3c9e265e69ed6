#include "model/arch/decoder_config.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/rope.h"

namespace tq {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 22;
constexpr int64_t kMaxLayers = 4096;

}  // namespace

Activation ReadActivation(ConfigReader& reader, std::string_view key,
                          std::string_view default_name) {
  const std::string name = reader.String(key, std::string(default_name));
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_tanh" || name == "gelu_new")
    return Activation::kGeluTanh;
  if (name == "situ") return Activation::kSitu;
  reader.Fail(Unsupported(reader.where() + ": " + std::string(key) +
                          ": expected silu or gelu_pytorch_tanh, found \"" + name + "\""));
  return Activation::kSilu;
}

int ReadSize(ConfigReader& reader, std::initializer_list<std::string_view> keys,
             int64_t default_value, int64_t max_value) {
  const int64_t value = reader.IntOf(keys, default_value);
  if (value < 1 || value > max_value) {
    reader.Fail(Corrupt(reader.where() + ": " + std::string(*keys.begin()) + ": expected 1.." +
                        std::to_string(max_value) + ", found " + std::to_string(value)));
    return 1;
  }
  return static_cast<int>(value);
}

std::vector<bool> ReadSlidingLayers(ConfigReader& reader, size_t num_layers,
                                    const std::vector<bool>& fallback) {
  if (!reader.Has("layer_types")) return fallback;
  const std::vector<std::string> names = reader.StringList("layer_types");
  std::vector<bool> out(num_layers, false);
  if (names.size() < num_layers) {
    reader.Fail(Corrupt(reader.where() + ": layer_types: expected " + std::to_string(num_layers) +
                        " entries, found " + std::to_string(names.size())));
    return out;
  }
  for (size_t i = 0; i < num_layers; ++i) {
    if (names[i] == "sliding_attention") {
      out[i] = true;
    } else if (names[i] != "full_attention" && names[i] != "attention") {
      reader.Fail(Unsupported(
          reader.where() + ": layer_types: expected full_attention or sliding_attention, found \"" +
          names[i] + "\""));
    }
  }
  return out;
}

ModelSpec ReadDecoder(ConfigReader& reader, const DecoderDefaults& defaults) {
  ModelSpec spec;
  spec.vocab_size = reader.RequiredInt("vocab_size", 1, int64_t{1} << 24);
  spec.hidden_size = reader.RequiredInt("hidden_size", 1, kMaxWidth);
  const int64_t layers = defaults.num_hidden_layers > 0 && !reader.Has("num_hidden_layers")
                             ? defaults.num_hidden_layers
                             : reader.RequiredInt("num_hidden_layers", 1, kMaxLayers);
  const int64_t intermediate = defaults.intermediate_size > 0 && !reader.Has("intermediate_size")
                                   ? defaults.intermediate_size
                                   : reader.RequiredInt("intermediate_size", 1, kMaxWidth);
  const bool heads_required =
      defaults.num_attention_heads == 0 || reader.Has("num_attention_heads");
  const int64_t heads = heads_required ? reader.RequiredInt("num_attention_heads", 1, 65536)
                                       : defaults.num_attention_heads;
  const int64_t kv_heads =
      reader.Int("num_key_value_heads",
                 defaults.num_key_value_heads > 0 ? defaults.num_key_value_heads : heads);
  int64_t head_dim = reader.Int("head_dim", defaults.head_dim);
  if (head_dim == 0) {
    if (spec.hidden_size % heads != 0) {
      reader.Fail(Corrupt(reader.where() +
                          ": expected hidden_size divisible by num_attention_heads, found " +
                          std::to_string(spec.hidden_size) + " and " + std::to_string(heads)));
    }
    head_dim = spec.hidden_size / heads;
  }
  spec.max_position_embeddings =
      reader.IntOf({"max_position_embeddings", "model_max_length"}, 2048);
  const auto eps = static_cast<float>(
      reader.Number(defaults.eps_key, static_cast<double>(defaults.rms_norm_eps)));
  if (kv_heads < 1 || heads % kv_heads != 0) {
    reader.Fail(Corrupt(reader.where() +
                        ": expected num_attention_heads divisible by num_key_value_heads, found " +
                        std::to_string(heads) + " and " + std::to_string(kv_heads)));
  }
  if (head_dim < 2 || head_dim > 1024 || head_dim % 2 != 0) {
    reader.Fail(Unsupported(reader.where() +
                            ": head_dim: expected an even number up to 1024, found " +
                            std::to_string(head_dim)));
  }
  if (spec.max_position_embeddings < 1 || spec.max_position_embeddings > (int64_t{1} << 30)) {
    reader.Fail(Corrupt(reader.where() + ": max_position_embeddings: expected 1..2^30, found " +
                        std::to_string(spec.max_position_embeddings)));
  }
  if (!(eps > 0.0f && eps < 1.0f)) {
    reader.Fail(Corrupt(reader.where() + ": " + std::string(defaults.eps_key) +
                        ": expected a number between 0 and 1, found " + std::to_string(eps)));
  }
  if (!reader.status().ok()) return spec;

  spec.head.norm.eps = eps;
  BlockSpec block;
  block.norm.eps = eps;
  block.post_norm.eps = eps;
  AttentionSpec attention;
  attention.num_attention_heads = static_cast<int>(heads);
  attention.num_key_value_heads = static_cast<int>(kv_heads);
  attention.head_dim = static_cast<int>(head_dim);
  attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  DenseFfnSpec ffn;
  ffn.intermediate_size = intermediate;
  ffn.activation = ReadActivation(reader, defaults.activation_key, defaults.activation);
  if (ffn.activation == Activation::kSitu) {
    ffn.alpha = static_cast<float>(reader.Number("activation_situ_beta", 4.0));
    ffn.limit = static_cast<float>(reader.Number("activation_situ_linear_beta", 0.0));
    if (!(ffn.alpha > 0.0f) || ffn.limit < 0.0f) {
      reader.Fail(Corrupt(reader.where() + ": expected activation_situ_beta above 0"));
    }
  }
  block.mixer = attention;
  block.ffn = ffn;
  for (int64_t i = 0; i < layers; ++i) {
    block.prefix = "model.layers." + std::to_string(i) + ".";
    spec.blocks.push_back(block);
  }
  return spec;
}

}  // namespace tq

// "gemma3": the text part of Gemma 3. Norms are stored as 1 + w.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/gguf_arch.h"

namespace tq {
namespace {

constexpr GgufChange kNorm = GgufChange::kPlusOne;

// Which layers slide: a bool per layer, or every n-th layer attends to all positions.
std::vector<bool> SlidingLayers(GgufKeys& keys, int64_t num_layers) {
  const std::string key = keys.Arch("attention.sliding_window_pattern");
  std::vector<bool> sliding(static_cast<size_t>(num_layers));
  const GgufValue* value = keys.Find(key);
  if (value != nullptr && value->is_array) {
    if (value->type != GgufType::kBool || value->count != sliding.size()) {
      keys.Bad(key, "expected " + std::to_string(num_layers) + " bools, found " +
                        std::to_string(value->count) + " items, " + value->TypeName());
      return sliding;
    }
    for (size_t i = 0; i < sliding.size(); ++i) sliding[i] = value->BoolAt(i).value_or(false);
    return sliding;
  }
  const int64_t period = keys.Int(key, 6, 1, 1 << 16);
  for (int64_t i = 0; i < num_layers; ++i) {
    sliding[static_cast<size_t>(i)] = i % period != period - 1;
  }
  return sliding;
}

void ReadGemma3Config(GgufKeys& keys, GgufModel& model) {
  constexpr int64_t kLayersOf27b = 62;  // the only size whose attention scale is not head_dim^-0.5
  Json& config = model.config;
  config["model_type"] = "gemma3_text";
  config["architectures"] = Json::array({"Gemma3ForCausalLM"});
  config["hidden_activation"] = "gelu_pytorch_tanh";
  config["query_pre_attn_scalar"] =
      model.num_layers == kLayersOf27b ? model.hidden / model.heads : model.head_dim;
  config["rope_local_base_freq"] = keys.Float(keys.Arch("rope.freq_base_swa"), 10000.0);
  const int64_t window = keys.Int(keys.Arch("attention.sliding_window"), 0, 0, int64_t{1} << 40);
  std::vector<bool> sliding = SlidingLayers(keys, model.num_layers);
  if (window == 0) {
    sliding.assign(sliding.size(), false);
  } else {
    config["sliding_window"] = window;
  }
  Json layer_types = Json::array();
  for (const bool layer : sliding) {
    layer_types.push_back(layer ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = layer_types;
  for (const auto& [key, name] :
       {std::pair("attn_logit_softcapping", "attn_logit_softcapping"),
        std::pair("final_logit_softcapping", "final_logit_softcapping")}) {
    if (keys.Has(keys.Arch(key))) config[name] = keys.Float(keys.Arch(key), 0.0);
  }
  ReadRopeScaling(keys, model);
}

}  // namespace

GgufArch Gemma3GgufArch() {
  using Dim = GgufDim;
  const GgufTensorRules norms = {
      {"attn_norm.weight", "input_layernorm.weight", Dim::kHidden, Dim::kNone, kNorm},
      {"post_attention_norm.weight", "post_attention_layernorm.weight", Dim::kHidden, Dim::kNone,
       kNorm},
      {"ffn_norm.weight", "pre_feedforward_layernorm.weight", Dim::kHidden, Dim::kNone, kNorm},
      {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", Dim::kHidden, Dim::kNone,
       kNorm},
  };
  return {
      ModelRules(kNorm),
      JoinRules({norms, AttentionRules(GgufChange::kNone), HeadNormRules(kNorm), GatedMlpRules()}),
      ReadGemma3Config};
}

}  // namespace tq

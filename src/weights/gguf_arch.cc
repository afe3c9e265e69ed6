#include "weights/gguf_arch.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tq {

#define GGUF_ARCH(name, Make) GgufArch Make();
#include "base/json.h"
#include "weights/gguf_arch_list.inc"
#undef GGUF_ARCH

namespace {

struct Entry {
  std::string_view name;
  GgufArch (*make)();
};

constexpr Entry kArchs[] = {
#define GGUF_ARCH(name, Make) {name, Make},
#include "weights/gguf_arch_list.inc"
#undef GGUF_ARCH
};

using Dim = GgufDim;

constexpr int64_t kMaxLayers = 1 << 16;
constexpr int64_t kMaxSize = 1 << 24;  // of any one dimension but the vocabulary

void ReadSizes(GgufKeys& keys, GgufModel& model) {
  model.num_layers = keys.RequiredInt(keys.Arch("block_count"), 1, kMaxLayers);
  model.hidden = keys.RequiredInt(keys.Arch("embedding_length"), 1, kMaxSize);
  model.ffn = keys.RequiredInt(keys.Arch("feed_forward_length"), 1, kMaxSize);
  const std::string head_key = keys.Arch("attention.head_count");
  model.heads = keys.RequiredInt(head_key, 1, kMaxSize);
  const std::string kv_key = keys.Arch("attention.head_count_kv");
  model.kv_heads = keys.Int(kv_key, model.heads, 1, model.heads);
  if (model.heads % model.kv_heads != 0) {
    keys.Bad(kv_key, std::to_string(model.kv_heads) + " does not divide the " +
                         std::to_string(model.heads) + " query heads");
  }
  const std::string length_key = keys.Arch("attention.key_length");
  if (!keys.Has(length_key) && model.hidden % model.heads != 0) {
    keys.Bad(head_key, std::to_string(model.heads) + " does not divide embedding_length " +
                           std::to_string(model.hidden));
  }
  model.head_dim =
      keys.Int(length_key, std::max<int64_t>(model.hidden / model.heads, 1), 1, kMaxSize);
  for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
    const std::string key = keys.Arch(name);
    const int64_t length = keys.Int(key, model.head_dim, 0, kMaxSize);
    if (length != model.head_dim) {
      keys.Refuse(key, "expected the head size " + std::to_string(model.head_dim) + ", found " +
                           std::to_string(length));
    }
  }
  if (model.head_dim % 2 != 0) {
    keys.Bad(length_key, "the head size " + std::to_string(model.head_dim) + " is odd");
  }
}

// Old and new spellings of a context extension; "" when there is none.
std::string ScalingType(GgufKeys& keys, double factor) {
  const std::string key = keys.Arch("rope.scaling.type");
  const std::string type = keys.String(key, factor != 1.0 ? "linear" : "none");
  if (type == "none") return "";
  if (type != "linear" && type != "yarn") {
    keys.Refuse(key, "rope scaling \"" + type + "\" is not supported (known: none, linear, yarn)");
  }
  return type;
}

void ReadYarn(GgufKeys& keys, Json& scaling) {
  const std::string original = keys.Arch("rope.scaling.original_context_length");
  if (keys.Has(original)) {
    scaling["original_max_position_embeddings"] = keys.Int(original, 1, 1, int64_t{1} << 40);
  }
  for (const char* name : {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"}) {
    const std::string key = keys.Arch(name);
    if (keys.Has(key)) scaling["attention_factor"] = keys.Float(key, 1.0);
  }
  for (const char* name : {"beta_fast", "beta_slow"}) {
    const std::string key = keys.Arch("rope.scaling.yarn_" + std::string(name));
    if (keys.Has(key)) scaling[name] = keys.Float(key, 1.0);
  }
  const std::string extrapolation = keys.Arch("rope.scaling.yarn_ext_factor");
  const double mix = keys.Float(extrapolation, 1.0);
  if (mix >= 0.0 && mix != 1.0) keys.Refuse(extrapolation, "expected 1, found another mix");
  const std::string multiplier = keys.Arch("rope.scaling.yarn_log_multiplier");
  if (keys.Float(multiplier, 0.0) != 0.0) {
    keys.Refuse(multiplier, "is not supported for " + keys.architecture());
  }
}

}  // namespace

std::optional<GgufArch> FindGgufArch(std::string_view name) {
  for (const Entry& entry : kArchs) {
    if (entry.name == name) return entry.make();
  }
  return std::nullopt;
}

std::string KnownGgufArchs() {
  std::string out;
  for (const Entry& entry : kArchs) out += (out.empty() ? "" : ", ") + std::string(entry.name);
  return out;
}

GgufTensorRules ModelRules(GgufChange norm) {
  return {
      {"token_embd.weight", "model.embed_tokens.weight", Dim::kVocab, Dim::kHidden},
      {"output_norm.weight", "model.norm.weight", Dim::kHidden, Dim::kNone, norm},
      {"output.weight", "lm_head.weight", Dim::kVocab, Dim::kHidden, GgufChange::kNone, "lm_head"},
  };
}

GgufTensorRules AttentionRules(GgufChange rows) {
  return {
      {"attn_q.weight", "self_attn.q_proj.weight", Dim::kQuery, Dim::kHidden, rows},
      {"attn_k.weight", "self_attn.k_proj.weight", Dim::kKeyValue, Dim::kHidden, rows},
      {"attn_v.weight", "self_attn.v_proj.weight", Dim::kKeyValue, Dim::kHidden},
      {"attn_output.weight", "self_attn.o_proj.weight", Dim::kHidden, Dim::kQuery},
  };
}

GgufTensorRules GatedMlpRules() {
  return {
      {"ffn_gate.weight", "mlp.gate_proj.weight", Dim::kFfn, Dim::kHidden},
      {"ffn_up.weight", "mlp.up_proj.weight", Dim::kFfn, Dim::kHidden},
      {"ffn_down.weight", "mlp.down_proj.weight", Dim::kHidden, Dim::kFfn},
  };
}

GgufTensorRules HeadNormRules(GgufChange norm) {
  return {
      {"attn_q_norm.weight", "self_attn.q_norm.weight", Dim::kHead, Dim::kNone, norm},
      {"attn_k_norm.weight", "self_attn.k_norm.weight", Dim::kHead, Dim::kNone, norm},
  };
}

GgufTensorRules PreNormRules() {
  return {
      {"attn_norm.weight", "input_layernorm.weight"},
      {"ffn_norm.weight", "post_attention_layernorm.weight"},
  };
}

GgufTensorRules JoinRules(std::initializer_list<GgufTensorRules> parts) {
  GgufTensorRules out;
  for (const GgufTensorRules& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

void ReadCommonConfig(GgufKeys& keys, GgufModel& model) {
  ReadSizes(keys, model);
  Json& config = model.config;
  config["vocab_size"] = model.vocab;
  config["num_hidden_layers"] = model.num_layers;
  config["hidden_size"] = model.hidden;
  config["intermediate_size"] = model.ffn;
  config["num_attention_heads"] = model.heads;
  config["num_key_value_heads"] = model.kv_heads;
  config["head_dim"] = model.head_dim;
  config["rms_norm_eps"] = keys.RequiredFloat(keys.Arch("attention.layer_norm_rms_epsilon"));
  config["rope_theta"] = keys.Float(keys.Arch("rope.freq_base"), 10000.0);
  if (keys.Has(keys.Arch("context_length"))) {
    config["max_position_embeddings"] =
        keys.Int(keys.Arch("context_length"), 1, 1, int64_t{1} << 40);
  }
  const std::string causal = keys.Arch("attention.causal");
  if (!keys.Bool(causal, true)) keys.Refuse(causal, "only causal attention is supported");
  const std::string experts = keys.Arch("expert_count");
  if (keys.Int(experts, 0, 0, kMaxSize) != 0) {
    keys.Refuse(experts, "experts are not supported for " + keys.architecture());
  }
  // The vocabulary's size is that of the embedding; the others say nothing about the mathematics
  // here.
  keys.Ignore({keys.Arch("vocab_size"), keys.Arch("expert_used_count"), keys.Arch("pooling_type"),
               keys.Arch("tensor_data_layout"), keys.Arch("rope.scaling.finetuned")});
}

void ReadRopeScaling(GgufKeys& keys, GgufModel& model) {
  const double old_factor = keys.Float(keys.Arch("rope.scale_linear"), 1.0);
  const std::string factor_key = keys.Arch("rope.scaling.factor");
  const double factor = keys.Float(factor_key, old_factor);
  const std::string type = ScalingType(keys, factor == 0.0 ? 1.0 : factor);
  if (!model.rope_factors.empty()) {
    if (!type.empty()) keys.Refuse(factor_key, "together with rope_freqs.weight is not supported");
    model.config["rope_scaling"] = {{"rope_type", "tq_factors"}, {"factors", model.rope_factors}};
    return;
  }
  if (type.empty()) {
    keys.Ignore(
        {keys.Arch("rope.scaling.original_context_length"), keys.Arch("rope.scaling.attn_factor")});
    return;
  }
  if (factor <= 0.0) keys.Bad(factor_key, "expected a factor above 0");
  Json scaling = {{"rope_type", type}, {"factor", factor}};
  if (type == "yarn") ReadYarn(keys, scaling);
  model.config["rope_scaling"] = scaling;
}

}  // namespace tq

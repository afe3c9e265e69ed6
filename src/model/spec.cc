#include "model/spec.h"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/ffns/dense.h"
#include "model/mixers/attention.h"

namespace tq {

#define ARCH(name, Parse) ModelSpec Parse(ConfigReader& config);
#include "model/arch/arch_list.inc"
#undef ARCH

namespace {

struct Arch {
  std::string_view name;
  ModelSpec (*parse)(ConfigReader&);
};

constexpr Arch kArchs[] = {
#define ARCH(name, Parse) {name, Parse},
#include "model/arch/arch_list.inc"
#undef ARCH
};

// Keys that describe training, files or defaults of other programs, never the forward pass.
constexpr std::string_view kHarmlessKeys[] = {"_name_or_path",
                                              "architectures",
                                              "attention_dropout",
                                              "auto_map",
                                              "bos_token_id",
                                              "chunk_size_feed_forward",
                                              "dtype",
                                              "embd_pdrop",
                                              "eos_token_id",
                                              "hidden_dropout",
                                              "id2label",
                                              "initializer_range",
                                              "is_llama_config",
                                              "label2id",
                                              "model_type",
                                              "pad_token_id",
                                              "pretraining_tp",
                                              "quantization",
                                              "resid_pdrop",
                                              "rope_interleaved",
                                              "tie_word_embeddings",
                                              "tokenizer_class",
                                              "torch_dtype",
                                              "transformers.js_config",
                                              "transformers_version",
                                              "use_cache",
                                              "cache_implementation",
                                              "return_dict",
                                              "output_attentions",
                                              "output_hidden_states",
                                              "use_return_dict",
                                              "unsloth_fixed",
                                              "unsloth_version",
                                              "_attn_implementation_autoset"};

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

Status UnknownModelType(const std::string& name) {
  std::vector<std::string> known = KnownModelTypes();
  const std::string_view wanted = std::string_view(name).substr(0, 64);
  std::stable_sort(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return EditDistance(wanted, a) < EditDistance(wanted, b);
  });
  std::string nearest;
  for (const std::string& type : known) nearest += (nearest.empty() ? "" : ", ") + type;
  return Unsupported("config.json: model_type \"" + std::string(wanted) +
                     "\" is not known; known (nearest first): " + nearest);
}

// Weights that were quantized by another method would load as garbage.
Status CheckQuantization(ConfigReader& reader) {
  for (const char* key : {"quantization_config", "quantization"}) {
    const Json* value = reader.Raw(key);
    if (value == nullptr) continue;
    ConfigReader quantization(*value, std::string("config.json: ") + key);
    const std::string mode = quantization.String("mode", "");
    const std::string method = quantization.String("quant_method", mode.empty() ? "affine" : mode);
    TQ_RETURN_IF_ERROR(quantization.status());
    if (method != "turboquant") {
      return Unsupported(std::string("config.json: ") + key +
                         ": expected turboquant or no quantization, found " + method +
                         ": start from the unquantized checkpoint");
    }
  }
  return Status::Ok();
}

}  // namespace

std::vector<std::string> KnownModelTypes() {
  std::vector<std::string> out;
  for (const Arch& arch : kArchs) out.emplace_back(arch.name);
  std::sort(out.begin(), out.end());
  return out;
}

Result<ModelSpec> ParseModelSpec(const Json& config, bool has_lm_head) {
  ConfigReader reader(config, "config.json");
  TQ_RETURN_IF_ERROR(reader.status());
  const std::string model_type = reader.String("model_type", "");
  const auto* arch = std::find_if(std::begin(kArchs), std::end(kArchs), [&](const Arch& candidate) {
    return candidate.name == model_type;
  });
  TQ_RETURN_IF_ERROR(reader.status());
  if (arch == std::end(kArchs)) return UnknownModelType(model_type);
  TQ_RETURN_IF_ERROR(CheckQuantization(reader));

  ModelSpec spec = arch->parse(reader);
  spec.model_type = model_type;
  spec.tie_word_embeddings = reader.Bool("tie_word_embeddings", !has_lm_head);
  for (const std::string_view key : kHarmlessKeys) reader.Ignore({key});
  TQ_RETURN_IF_ERROR(reader.status());
  for (const std::string& key : reader.UnreadKeys()) {
    const Json& value = config[key];
    const bool off = value.is_null() || value == false || (value.is_structured() && value.empty());
    if (!off) {
      return Unsupported("config.json: key \"" + key + "\" is not understood by model_type " +
                         model_type + " and may change the maths");
    }
  }
  for (const BlockSpec& block : spec.blocks) {
    if (block.mixer.sliding_window < 0) {
      return Corrupt("config.json: sliding_window: expected 0 or more, found " +
                     std::to_string(block.mixer.sliding_window));
    }
  }
  return spec;
}

std::vector<TensorNeed> NeededTensors(const ModelSpec& spec) {
  std::vector<TensorNeed> out;
  out.push_back(
      {"model.embed_tokens.weight", {spec.vocab_size, spec.hidden_size}, TensorRole::kEmbedding});
  const Shape norm = {spec.hidden_size};
  for (const BlockSpec& block : spec.blocks) {
    out.push_back({block.prefix + "input_layernorm.weight", norm, TensorRole::kNorm});
    AppendAttentionTensors(block.mixer, block.prefix + "self_attn.", spec.hidden_size, out);
    out.push_back({block.prefix + "post_attention_layernorm.weight", norm, TensorRole::kNorm});
    if (block.residual == Residual::kSandwich) {
      out.push_back({block.prefix + "pre_feedforward_layernorm.weight", norm, TensorRole::kNorm});
      out.push_back({block.prefix + "post_feedforward_layernorm.weight", norm, TensorRole::kNorm});
    }
    AppendDenseFfnTensors(block.ffn, block.prefix + "mlp.", spec.hidden_size, out);
  }
  out.push_back({"model.norm.weight", norm, TensorRole::kNorm});
  if (!spec.tie_word_embeddings) {
    out.push_back({"lm_head.weight", {spec.vocab_size, spec.hidden_size}, TensorRole::kLinear});
  }
  return out;
}

}  // namespace tq

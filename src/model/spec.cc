#include "model/spec.h"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/block.h"

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

struct Wrapper {
  std::string_view name;
  std::string_view text;  // model_type of the text_config, when it names none
};

constexpr Wrapper kWrappers[] = {
#define WRAPPER(name, text) {name, text},
#include "model/arch/wrapper_list.inc"
#undef WRAPPER
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
                                              "router_aux_loss_coef",
                                              "output_router_logits",
                                              "pad_token_id",
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

Status UnknownModelType(const std::string& where, const std::string& name) {
  std::vector<std::string> known = KnownModelTypes();
  const std::string_view wanted = std::string_view(name).substr(0, 64);
  std::stable_sort(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return EditDistance(wanted, a) < EditDistance(wanted, b);
  });
  std::string nearest;
  for (const std::string& type : known) nearest += (nearest.empty() ? "" : ", ") + type;
  return Unsupported(where + ": model_type \"" + std::string(wanted) +
                     "\" is not known; known (nearest first): " + nearest);
}

// Methods whose tensors the loader recognises by themselves; others would load as garbage.
constexpr std::string_view kQuantMethods[] = {
    "turboquant", "affine", "mxfp4", "mxfp8", "nvfp4", "fp8", "modelopt", "compressed-tensors"};

Status CheckQuantization(ConfigReader& reader) {
  for (const char* key : {"quantization_config", "quantization"}) {
    const Json* value = reader.Raw(key);
    if (value == nullptr) continue;
    ConfigReader quantization(*value, reader.where() + ": " + key);
    const std::string mode = quantization.String("mode", "affine");
    const std::string method = quantization.String("quant_method", mode);
    TQ_RETURN_IF_ERROR(quantization.status());
    if (std::find(std::begin(kQuantMethods), std::end(kQuantMethods), method) ==
        std::end(kQuantMethods)) {
      return Unsupported(reader.where() + ": " + key + ": quantization method \"" + method +
                         "\" is not supported: start from the unquantized checkpoint");
    }
  }
  return Status::Ok();
}

// Configs of multimodal checkpoints keep the language model's keys apart.
const Json& TextConfig(const Json& config) {
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() ? *text : config;
}

}  // namespace

namespace {

// The architecture of a model_type, or of the one that a wrapper's text_config names.
Result<const Arch*> FindArch(const std::string& model_type, bool wrapped, ConfigReader& text) {
  std::string name = model_type;
  std::string where = "config.json";
  for (const Wrapper& wrapper : kWrappers) {
    if (wrapper.name != model_type) continue;
    name = wrapper.text;
    if (wrapped) name = text.String("model_type", name);
    where = text.where();
  }
  TQ_RETURN_IF_ERROR(text.status());
  const auto* arch = std::find_if(std::begin(kArchs), std::end(kArchs),
                                  [&](const Arch& candidate) { return candidate.name == name; });
  if (arch == std::end(kArchs)) return UnknownModelType(where, name);
  return arch;
}

// What the ops take for granted (backend/ops*.h): rotary dims inside their heads, even head sizes,
// few enough snapshots.
Status CheckRope(const ModelSpec& spec, int rope, int head_dim, const std::string& where) {
  if (head_dim % 2 != 0) {
    return Unsupported("config.json: " + where + ": expected an even head size, found " +
                       std::to_string(head_dim));
  }
  if (rope < 0) return Status::Ok();
  const int rotary = spec.ropes[static_cast<size_t>(rope)].rotary_dim();
  if (rotary <= head_dim) return Status::Ok();
  return Corrupt("config.json: " + where + ": expected at most " + std::to_string(head_dim) +
                 " rotary dims (the head's size), found " + std::to_string(rotary));
}

Status CheckShapes(const ModelSpec& spec) {
  int snapshots = 0;
  for (const BlockSpec& block : spec.blocks) {
    snapshots += block.snapshot ? 1 : 0;
    if (const auto* attention = std::get_if<AttentionSpec>(&block.mixer)) {
      if (attention->sliding_window < 0) {
        return Corrupt("config.json: sliding_window: expected 0 or more, found " +
                       std::to_string(attention->sliding_window));
      }
      TQ_RETURN_IF_ERROR(
          CheckRope(spec, attention->rope, attention->head_dim, block.prefix + "self_attn"));
      if (attention->indexer) {
        TQ_RETURN_IF_ERROR(CheckRope(spec, attention->rope, attention->indexer->head_dim,
                                     block.prefix + "self_attn.indexer"));
      }
    }
    if (const auto* mla = std::get_if<MlaSpec>(&block.mixer)) {
      TQ_RETURN_IF_ERROR(
          CheckRope(spec, mla->rope, mla->qk_rope_head_dim, block.prefix + "self_attn"));
      if (mla->indexer) {
        TQ_RETURN_IF_ERROR(
            CheckRope(spec, mla->rope, mla->indexer->head_dim, block.prefix + "self_attn.indexer"));
      }
    }
  }
  if (snapshots > kMaxSnapshots) {
    return Unsupported("config.json: attn_res_block_size: expected at most " +
                       std::to_string(kMaxSnapshots) + " blocks of residuals, found " +
                       std::to_string(snapshots));
  }
  return Status::Ok();
}

// The checkpoint's norms hold 1 + w already.
void UnfoldNorms(ModelSpec& spec) {
  spec.head.norm.plus_one = false;
  spec.hyper_norm.plus_one = false;
  for (BlockSpec& block : spec.blocks) {
    block.norm.plus_one = false;
    block.post_norm.plus_one = false;
    if (auto* attention = std::get_if<AttentionSpec>(&block.mixer)) {
      if (attention->qk_norm) attention->qk_norm->plus_one = false;
      if (attention->indexer) attention->indexer->norm.plus_one = false;
    }
  }
}

}  // namespace

std::vector<std::string> KnownModelTypes() {
  std::vector<std::string> out;
  for (const Arch& arch : kArchs) out.emplace_back(arch.name);
  for (const Wrapper& wrapper : kWrappers) out.emplace_back(wrapper.name);
  std::sort(out.begin(), out.end());
  return out;
}

Result<ModelSpec> ParseModelSpec(const Json& config, const CheckpointFacts& facts) {
  ConfigReader outer(config, "config.json");
  TQ_RETURN_IF_ERROR(outer.status());
  const std::string model_type = outer.String("model_type", "");
  const Json& text = TextConfig(config);
  const bool wrapped = &text != &config;
  ConfigReader reader(text, wrapped ? "config.json: text_config" : "config.json");
  TQ_RETURN_IF_ERROR(outer.status());
  TQ_ASSIGN_OR_RETURN(const Arch* arch, FindArch(model_type, wrapped, reader));
  TQ_RETURN_IF_ERROR(CheckQuantization(outer));
  TQ_RETURN_IF_ERROR(CheckQuantization(reader));
  ModelSpec spec = arch->parse(reader);
  spec.model_type = model_type;
  // A config whose window is the original one although its rope is scaled for a longer one.
  for (const RopeSpec& rope : spec.ropes) {
    spec.max_position_embeddings = std::max(spec.max_position_embeddings, rope.max_positions);
  }
  spec.tie_word_embeddings =
      reader.Bool("tie_word_embeddings", outer.Bool("tie_word_embeddings", !facts.has_lm_head));
  TQ_RETURN_IF_ERROR(outer.status());
  for (const std::string_view key : kHarmlessKeys) reader.Ignore({key});
  TQ_RETURN_IF_ERROR(reader.status());
  for (const std::string& key : reader.UnreadKeys()) {
    const Json& value = text[key];
    const bool off = value.is_null() || value == false || (value.is_structured() && value.empty());
    if (!off) {
      return Unsupported(reader.where() + ": key \"" + key + "\" is not understood by model_type " +
                         model_type + " and may change the maths");
    }
  }
  if (facts.norms_include_one) UnfoldNorms(spec);
  TQ_RETURN_IF_ERROR(CheckShapes(spec));
  return spec;
}

}  // namespace tq

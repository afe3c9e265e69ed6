#include "quantize/gguf_config.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "weights/gguf_arch.h"
#include "weights/json_member.h"
#include "weights/quote.h"

namespace tq {
namespace {

struct ModelType {
  std::string_view model_type;  // config.json's
  std::string_view architecture;
};
constexpr ModelType kModelTypes[] = {{"gemma3", "gemma3"}, {"gemma3_text", "gemma3"},
                                     {"llama", "llama"},   {"mistral", "llama"},
                                     {"qwen2", "qwen2"},   {"qwen3", "qwen3"}};

double NumberOf(const Json& object, const char* key, double otherwise) {
  const Json& value = Member(object, key);
  return value.is_number() ? value.get<double>() : otherwise;
}

// The dict of a rope, wherever the config keeps it: one for all layers, or one per type of layer.
const Json& RopeDict(const Json& config, const char* layer_type) {
  const Json& parameters = Member(config, "rope_parameters");
  const Json& own = Member(parameters, layer_type);
  if (own.is_object()) return own;
  if (parameters.is_object() && !Member(parameters, "full_attention").is_object()) {
    return parameters;
  }
  return Member(config, "rope_scaling");
}

class ConfigWriter {
 public:
  ConfigWriter(const ModelSpec& model, const Json& config, const std::string& architecture,
               GgufMetadata& out)
      : model_(model), config_(config), architecture_(architecture), out_(out) {}

  Result<std::vector<float>> Run() {
    AddSizes();
    if (architecture_ == "gemma3") {
      AddGemma();
    } else if (Attention(0).sliding_window > 0) {
      AddInt("attention.sliding_window", Attention(0).sliding_window);
    }
    return AddRope();
  }

 private:
  const AttentionSpec& Attention(size_t layer) const {
    return std::get<AttentionSpec>(model_.blocks[layer].mixer);
  }
  std::string Key(std::string_view name) const { return architecture_ + '.' + std::string(name); }
  void AddInt(std::string_view name, int64_t value) {
    out_.Int(Key(name), static_cast<uint32_t>(value));
  }
  void AddFloat(std::string_view name, double value) {
    out_.Float(Key(name), static_cast<float>(value));
  }

  void AddSizes() {
    const AttentionSpec& attention = Attention(0);
    AddInt("vocab_size", model_.vocab_size);
    AddInt("context_length", model_.max_position_embeddings);
    AddInt("embedding_length", model_.hidden_size);
    AddInt("block_count", static_cast<int64_t>(model_.blocks.size()));
    AddInt("feed_forward_length", std::get<DenseFfnSpec>(model_.blocks[0].ffn).intermediate_size);
    AddInt("attention.head_count", attention.num_attention_heads);
    AddInt("attention.head_count_kv", attention.num_key_value_heads);
    AddInt("attention.key_length", attention.head_dim);
    AddInt("attention.value_length", attention.head_dim);
    AddInt("rope.dimension_count", attention.head_dim);
    AddFloat("attention.layer_norm_rms_epsilon", static_cast<double>(model_.head.norm.eps));
  }

  void AddGemma() {
    std::vector<bool> sliding;
    int64_t window = 0;
    for (size_t i = 0; i < model_.blocks.size(); ++i) {
      sliding.push_back(Attention(i).sliding_window > 0);
      window = std::max<int64_t>(window, Attention(i).sliding_window);
    }
    if (window > 0) {
      AddInt("attention.sliding_window", window);
      // Every n-th layer sees everything; a list where that is not the rule.
      const auto first_full = std::find(sliding.begin(), sliding.end(), false);
      const auto period = static_cast<size_t>(first_full - sliding.begin()) + 1;
      bool regular = true;
      for (size_t i = 0; i < sliding.size(); ++i) {
        regular = regular && sliding[i] == (i % period != period - 1);
      }
      if (regular) {
        AddInt("attention.sliding_window_pattern", static_cast<int64_t>(period));
      } else {
        out_.Bools(Key("attention.sliding_window_pattern"), sliding);
      }
    }
    if (model_.head.final_logit_softcapping != 0.0f) {
      AddFloat("final_logit_softcapping", static_cast<double>(model_.head.final_logit_softcapping));
    }
    const double local = NumberOf(config_, "rope_local_base_freq", 10000.0);
    AddFloat("rope.freq_base_swa",
             NumberOf(RopeDict(config_, "sliding_attention"), "rope_theta", local));
  }

  Result<std::vector<float>> AddRope() {
    const Json& dict = RopeDict(config_, "full_attention");
    const double default_theta = architecture_ == "gemma3" ? 1e6 : 10000.0;
    const double theta =
        NumberOf(dict, "rope_theta", NumberOf(config_, "rope_theta", default_theta));
    AddFloat("rope.freq_base", theta);
    std::string type = TextOf(Member(dict, "rope_type"));
    if (type.empty()) type = TextOf(Member(dict, "type"));
    if (type.empty() || type == "default") return std::vector<float>();
    if (type == "linear" || type == "yarn") {
      out_.Text(Key("rope.scaling.type"), type);
      AddFloat("rope.scaling.factor", NumberOf(dict, "factor", 1.0));
      if (type == "yarn") AddYarn(dict);
      return std::vector<float>();
    }
    // Other rules that only divide frequencies: llama.cpp reads the divisors of this one.
    if (architecture_ == "llama" && type == "llama3") return Divisors(theta);
    if (architecture_ == "llama" && type == "tq_factors") {
      std::vector<float> out;
      for (const Json& factor : Member(dict, "factors")) out.push_back(factor.get<float>());
      return out;
    }
    return Unsupported("rope_type " + Quoted(type) +
                       " has no form in a GGUF file of architecture " + Quoted(architecture_));
  }

  void AddYarn(const Json& dict) {
    const double original = NumberOf(dict, "original_max_position_embeddings",
                                     static_cast<double>(model_.max_position_embeddings));
    AddInt("rope.scaling.original_context_length", static_cast<int64_t>(original));
    if (const Json& factor = Member(dict, "attention_factor"); factor.is_number()) {
      AddFloat("rope.scaling.attn_factor", factor.get<double>());
    }
    for (const char* name : {"beta_fast", "beta_slow"}) {
      if (const Json& beta = Member(dict, name); beta.is_number()) {
        AddFloat("rope.scaling.yarn_" + std::string(name), beta.get<double>());
      }
    }
  }

  // What divides theta^(-2 i / head_dim) to give the model's frequencies.
  std::vector<float> Divisors(double theta) const {
    const std::vector<float>& frequencies = model_.ropes[0].inv_freq;
    std::vector<float> out;
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(frequencies.size());
      out.push_back(static_cast<float>(std::pow(theta, -share) / frequencies[i]));
    }
    return out;
  }

  const ModelSpec& model_;
  const Json& config_;
  const std::string& architecture_;
  GgufMetadata& out_;
};

bool Close(double a, double b) { return std::fabs(a - b) <= 2e-6 * std::max(std::fabs(a), 1e-30); }

bool SameRope(const ModelSpec& a, int rope_a, const ModelSpec& b, int rope_b) {
  if (rope_a < 0 || rope_b < 0) return rope_a < 0 && rope_b < 0;
  const RopeSpec& x = a.ropes[static_cast<size_t>(rope_a)];
  const RopeSpec& y = b.ropes[static_cast<size_t>(rope_b)];
  return Close(x.attention_factor, y.attention_factor) &&
         std::equal(x.inv_freq.begin(), x.inv_freq.end(), y.inv_freq.begin(), y.inv_freq.end(),
                    [](float p, float q) { return Close(p, q); });
}

std::string BlockDifference(const ModelSpec& a, const ModelSpec& b, size_t layer) {
  const BlockSpec& x = a.blocks[layer];
  const BlockSpec& y = b.blocks[layer];
  const AttentionSpec& p = std::get<AttentionSpec>(x.mixer);
  const AttentionSpec& q = std::get<AttentionSpec>(y.mixer);
  const DenseFfnSpec& f = std::get<DenseFfnSpec>(x.ffn);
  const DenseFfnSpec& g = std::get<DenseFfnSpec>(y.ffn);
  if (x.residual != y.residual || !Close(x.norm.eps, y.norm.eps)) return "norms";
  if (p.num_attention_heads != q.num_attention_heads ||
      p.num_key_value_heads != q.num_key_value_heads || p.head_dim != q.head_dim) {
    return "attention heads";
  }
  if (p.q_bias != q.q_bias || p.k_bias != q.k_bias || p.v_bias != q.v_bias ||
      p.o_bias != q.o_bias) {
    return "attention biases";
  }
  if (p.qk_norm.has_value() != q.qk_norm.has_value() || p.v_norm.has_value() || !p.sinks.empty() ||
      p.gate != q.gate) {
    return "attention parts";
  }
  if (!Close(p.scale, q.scale) || !Close(p.q_multiplier, q.q_multiplier)) return "attention scale";
  if (p.position_beta != q.position_beta) return "attention scale by position";
  if (p.sliding_window != q.sliding_window) return "sliding window";
  if (!SameRope(a, p.rope, b, q.rope)) return "rope";
  if (f.intermediate_size != g.intermediate_size || f.activation != g.activation ||
      f.bias != g.bias || f.gated != g.gated) {
    return "feed-forward part";
  }
  return "";
}

bool IsDense(const ModelSpec& model) {
  return std::all_of(model.blocks.begin(), model.blocks.end(), [](const BlockSpec& block) {
    return std::holds_alternative<AttentionSpec>(block.mixer) &&
           std::holds_alternative<DenseFfnSpec>(block.ffn);
  });
}

}  // namespace

Result<std::string> GgufArchitecture(const ModelSpec& model) {
  std::string known;
  for (const ModelType& entry : kModelTypes) {
    if (entry.model_type == model.model_type && IsDense(model)) {
      TQ_CHECK(FindGgufArch(entry.architecture).has_value());
      return std::string(entry.architecture);
    }
    known += (known.empty() ? "" : ", ") + std::string(entry.model_type);
  }
  return Unsupported("model_type " + Quoted(model.model_type) +
                     " cannot be written as GGUF (possible: " + known +
                     "; any model can be exported with --to hf)");
}

Result<std::vector<float>> AddGgufConfig(const ModelSpec& model, const Json& config,
                                         const std::string& architecture, GgufMetadata& out) {
  const Json& text = Member(config, "text_config");
  return ConfigWriter(model, text.is_object() ? text : config, architecture, out).Run();
}

std::string ModelDifference(const ModelSpec& a, const ModelSpec& b) {
  if (!IsDense(a) || !IsDense(b) || a.blocks.size() != b.blocks.size()) return "layers";
  if (a.vocab_size != b.vocab_size || a.hidden_size != b.hidden_size) return "sizes";
  if (a.tie_word_embeddings != b.tie_word_embeddings) return "tied embeddings";
  if (!Close(a.embed_scale, b.embed_scale)) return "scale of the embeddings";
  if (a.max_position_embeddings != b.max_position_embeddings) return "context length";
  if (!Close(a.head.norm.eps, b.head.norm.eps) || !Close(a.head.logit_scale, b.head.logit_scale) ||
      !Close(a.head.final_logit_softcapping, b.head.final_logit_softcapping)) {
    return "head";
  }
  for (size_t i = 0; i < a.blocks.size(); ++i) {
    const std::string what = BlockDifference(a, b, i);
    if (!what.empty()) return "layer " + std::to_string(i) + ": " + what;
  }
  return "";
}

}  // namespace tq

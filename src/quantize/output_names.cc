#include "quantize/output_names.h"

#include <algorithm>
#include <charconv>

namespace tq {
namespace {

// Where the published loader looks for the experts of a model type; the rest: "switch_mlp".
struct StackName {
  std::string_view model_type;
  std::string_view name;
};
constexpr StackName kStackNames[] = {
    {"gpt_oss", "experts"},
    {"laguna", "experts"},
    {"sarvam_moe", "experts"},
    {"gemma4", "experts.switch_glu"},
    {"gemma4_text", "experts.switch_glu"},
};

// Parts of names that the published loader spells otherwise.
struct Rename {
  std::string_view model_type;
  std::string_view from;
  std::string_view to;
};
constexpr Rename kRenames[] = {
    {"kimi_k3", ".q_conv1d.", ".q_conv.conv."},
    {"kimi_k3", ".k_conv1d.", ".k_conv.conv."},
    {"kimi_k3", ".v_conv1d.", ".v_conv.conv."},
    {"kimi_linear", ".q_conv1d.", ".q_conv.conv."},
    {"kimi_linear", ".k_conv1d.", ".k_conv.conv."},
    {"kimi_linear", ".v_conv1d.", ".v_conv.conv."},
    {"kimi_linear", ".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"},
    {"laguna", ".mlp.shared_expert.", ".mlp.shared_experts."},
    {"sarvam_moe", ".gate.e_score_correction_bias", ".gate.expert_bias"},
};

// Types whose published loader wraps the text model even without a vision tower.
constexpr std::string_view kWrapped[] = {"qwen3_5",          "qwen3_5_text", "qwen3_5_moe",
                                         "qwen3_5_moe_text", "kimi_k3",      "muse_glimmer"};

bool IsNemotron(std::string_view model_type) { return model_type == "nemotron_h"; }

std::string_view StackOf(std::string_view model_type) {
  for (const StackName& entry : kStackNames) {
    if (entry.model_type == model_type) return entry.name;
  }
  return "switch_mlp";
}

std::string Renamed(std::string_view name, std::string_view model_type) {
  std::string out(name);
  for (const Rename& rename : kRenames) {
    const size_t at = out.find(rename.from);
    if (rename.model_type != model_type || at == std::string::npos) continue;
    out.replace(at, rename.from.size(), rename.to);
  }
  return out;
}

std::string Replaced(std::string_view name, std::string_view from, std::string_view to) {
  std::string out(name);
  if (out.starts_with(from)) out.replace(0, from.size(), to);
  return out;
}

}  // namespace

ExpertPath ParseExpertPath(std::string_view name, std::string_view model_type) {
  ExpertPath out;
  // The heads of a latent attention that MLX stores transposed.
  for (const std::string_view heads : {".embed_q.", ".unembed_out."}) {
    const size_t head = name.find(heads);
    if (head == std::string_view::npos) continue;
    const size_t number = head + heads.size();
    const size_t part = name.find('.', number);
    if (part == std::string_view::npos) return out;
    out.is_expert = true;
    out.is_head = true;
    out.stack = OutputName(name.substr(0, number - 1), model_type);
    out.part = name.substr(part + 1);
    return out;
  }
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  if (at == std::string_view::npos) return out;
  const std::string_view rest = name.substr(at + kExperts.size());
  int expert = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), expert);
  const std::string_view tail = rest.substr(static_cast<size_t>(end - rest.data()));
  const size_t dot = tail.rfind('.');
  if (error != std::errc() || tail.empty() || tail[0] != '.' || dot == 0) return out;
  std::string leaf(tail.substr(1, dot - 1));
  if (IsNemotron(model_type)) leaf = leaf == "down_proj" ? "fc2" : "fc1";
  out.is_expert = true;
  out.part = tail.substr(dot + 1);
  out.stack = OutputName(std::string(name.substr(0, at + 1)), model_type) +
              std::string(StackOf(model_type)) + "." + leaf;
  return out;
}

std::string OutputName(std::string_view name, std::string_view model_type) {
  const bool wrapped =
      std::find(std::begin(kWrapped), std::end(kWrapped), model_type) != std::end(kWrapped);
  if (wrapped) return "language_model." + Renamed(name, model_type);
  if (!IsNemotron(model_type)) return Renamed(name, model_type);
  if (name == "model.embed_tokens.weight") return "backbone.embeddings.weight";
  if (name == "model.norm.weight") return "backbone.norm_f.weight";
  return Replaced(name, "model.", "backbone.");
}

bool FoldsNorm(const ModelSpec& model, const TensorNeed& need) {
  constexpr std::string_view kTypes[] = {"qwen3_next", "qwen3_5", "qwen4_exp"};
  const bool folds = std::any_of(std::begin(kTypes), std::end(kTypes), [&](std::string_view type) {
    return model.model_type.starts_with(type);
  });
  return folds && model.head.norm.plus_one && need.role == TensorRole::kNorm &&
         !need.name.ends_with("linear_attn.norm.weight");
}

bool IsConvolution(std::string_view name) { return name.ends_with("conv1d.weight"); }

}  // namespace tq

#include "weights/naming/aliases.h"

namespace tq {
namespace {

struct Alias {
  std::string_view from;
  std::string_view to;
  std::string_view model_type = "";  // empty: any
};

// Where a name begins; the first that fits.
constexpr Alias kPrefixes[] = {
    {"model.language_model.visual.", "model.visual."},
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    {"language_model.mtp.", "mtp."},
    {"language_model.", "model."},
    {"model.encoder.language_model.layers.", "model.encoder_layers."},
    {"model.decoder.", "model."},
    {"backbone.", "model."},
    {"tq_speculator.", "mtp."},
    // Models that were saved without their head.
    {"layers.", "model.layers."},
    {"embed_tokens.", "model.embed_tokens."},
    {"norm.", "model.norm."},
};

// Whole names below "model.", and their parts.
constexpr Alias kRoots[] = {
    {"model.embeddings.", "model.embed_tokens."},
    {"model.word_embeddings.", "model.embed_tokens."},
    {"model.norm_f.", "model.norm."},
    {"model.output_attn_res.proj_", "model.output_attn_res_proj."},
    {"model.output_attn_res.norm_", "model.output_attn_res_norm."},
};

// Inside a name, in this order, each at most once. Without a dot at its end: the end of the name.
constexpr Alias kInside[] = {
    // Blocks.
    {".block_sparse_moe.", ".mlp."},
    {".mlp.shared_experts.", ".mlp.shared_expert.", "laguna"},
    {".self_attention_res.proj_", ".self_attention_res_proj."},
    {".self_attention_res.norm_", ".self_attention_res_norm."},
    {".mlp_res.proj_", ".mlp_res_proj."},
    {".mlp_res.norm_", ".mlp_res_norm."},
    // Attention.
    {".attention.", ".self_attn."},
    {".self_attn.dense.", ".self_attn.o_proj."},
    {".self_attn.query_layernorm.", ".self_attn.q_norm."},
    {".self_attn.key_layernorm.", ".self_attn.k_norm."},
    {".q_conv.conv.", ".q_conv1d."},
    {".k_conv.conv.", ".k_conv1d."},
    {".v_conv.conv.", ".v_conv1d."},
    {".qkv_conv.conv.", ".qkv_conv1d."},
    // Routers.
    {".mlp.gate.proj.", ".mlp.gate."},
    {".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"},
    {".experts.e_score_correction_bias", ".gate.e_score_correction_bias"},
    {".gate.expert_bias", ".gate.e_score_correction_bias"},
    // Experts.
    {".switch_mlp.fc1.", ".experts.up_proj."},
    {".switch_mlp.fc2.", ".experts.down_proj."},
    {".switch_mlp.", ".experts."},
    {".experts.switch_glu.", ".experts."},
    {".switch_glu.", ".experts."},
    {".w1.", ".gate_proj."},
    {".w3.", ".up_proj."},
    {".w2.", ".down_proj."},
    {".experts.gate_up_proj_blocks", ".experts.gate_up_interleaved.weight"},
    {".experts.gate_up_proj_scales", ".experts.gate_up_interleaved.scales"},
    {".experts.gate_up_proj_bias", ".experts.gate_up_interleaved.bias"},
    {".experts.down_proj_blocks", ".experts.down_proj.weight"},
    {".experts.down_proj_scales", ".experts.down_proj.scales"},
    {".experts.down_proj_bias", ".experts.down_proj.bias"},
    {".experts.gate_up_proj", ".experts.gate_up_proj.weight"},
    {".experts.gate_proj", ".experts.gate_proj.weight"},
    {".experts.up_proj", ".experts.up_proj.weight"},
    {".experts.down_proj", ".experts.down_proj.weight"},
    // N-gram tables.
    {".ngram_embedding.shards.", ".ngram_embedding.shard_"},
    // Parts of a quantized matrix.
    {".weight_packed", ".weight"},
    {".weight_scale_inv", ".scales"},
    {".weight_scale", ".scales"},
    {".weight_global_scale", ".global_scale"},
};

constexpr std::string_view kTowers[] = {
    "visual.",          "vision_tower.",      "vision_model.", "vision_adapter.",
    "vision_embedder.", "vision_projection.", "mm_projector.", "multi_modal_projector.",
    "embed_vision.",    "audio_tower.",       "embed_audio.",  "encoder.",
    "image_newline",
};

bool ForType(const Alias& alias, std::string_view model_type) {
  return alias.model_type.empty() || alias.model_type == model_type;
}

void ReplaceInside(std::string& name, const Alias& alias) {
  const bool at_end = alias.from.back() != '.' && alias.from.back() != '_';
  const size_t at = at_end ? name.size() - alias.from.size() : name.find(alias.from);
  if (at_end ? !name.ends_with(alias.from) : at == std::string::npos) return;
  name.replace(at, alias.from.size(), alias.to);
}

}  // namespace

bool IsTowerTensor(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  for (const std::string_view tower : kTowers) {
    if (name.starts_with(tower)) return true;
  }
  return false;
}

bool IsAudioTensor(std::string_view name) { return name.find("audio") != std::string_view::npos; }

std::string CanonicalName(std::string_view stored, std::string_view model_type) {
  std::string name(stored);
  for (const Alias& alias : kPrefixes) {
    if (!name.starts_with(alias.from) || !ForType(alias, model_type)) continue;
    name.replace(0, alias.from.size(), alias.to);
    break;
  }
  if (IsTowerTensor(name)) return name;
  for (const Alias& alias : kRoots) {
    if (name.starts_with(alias.from)) name.replace(0, alias.from.size(), alias.to);
  }
  for (const Alias& alias : kInside) {
    if (ForType(alias, model_type)) ReplaceInside(name, alias);
  }
  return name;
}

}  // namespace tq

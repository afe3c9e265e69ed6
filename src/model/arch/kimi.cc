// kimi_linear and kimi_k3: Kimi Delta Attention and latent attention without rope. kimi_k3 mixes
// earlier residuals, gates its latent attention and runs its experts on a projection.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "model/arch/mla_config.h"
#include "model/arch/moe_config.h"

namespace tq {
namespace {

// true: KDA. linear_attn_config lists layers from 1; layer_types counts from 0.
std::vector<bool> ReadKdaLayers(ConfigReader& config, ConfigReader* linear, size_t num_layers) {
  std::vector<bool> out(num_layers, true);
  if (linear != nullptr && linear->Has("kda_layers")) {
    const std::vector<int64_t> listed = linear->IntList("kda_layers");
    for (size_t i = 0; i < num_layers; ++i) {
      out[i] = std::find(listed.begin(), listed.end(), static_cast<int64_t>(i) + 1) != listed.end();
    }
    return out;
  }
  const std::vector<std::string> names = config.StringList("layer_types");
  for (size_t i = 0; i < num_layers; ++i) {
    if (names.empty()) {
      out[i] = i == 0 || i % 4 != 0;
    } else if (i >= names.size()) {
      config.Fail(Corrupt(config.where() + ": layer_types: expected " + std::to_string(num_layers) +
                          " entries, found " + std::to_string(names.size())));
      return out;
    } else {
      out[i] = names[i] == "linear_attention";
    }
  }
  return out;
}

KdaSpec ReadKda(ConfigReader& source, float eps, bool nested) {
  KdaSpec kda;
  kda.num_heads = ReadSize(source, {nested ? "num_heads" : "linear_num_heads"}, 32, 4096);
  kda.head_dim = ReadSize(source, {nested ? "head_dim" : "linear_head_dim"}, 128, 1024);
  kda.conv_kernel =
      ReadSize(source, {nested ? "short_conv_kernel_size" : "linear_conv_kernel_dim"}, 4, 64);
  kda.gate_lower_bound = static_cast<float>(source.Number("gate_lower_bound", 0.0));
  kda.full_rank_gate = source.Bool("use_full_rank_gate", false);
  kda.norm_eps = eps;
  return kda;
}

// The mixers of every layer, and what both types share.
ModelSpec ReadKimi(ConfigReader& config, float latent_eps) {
  ModelSpec spec = ReadDecoder(config, {.rms_norm_eps = 1e-5f, .head_dim = 64});
  if (!config.status().ok()) return spec;
  const float eps = spec.head.norm.eps;
  MlaSpec mla = ReadMla(config, AttentionOf(spec.blocks[0]).num_attention_heads, -1);
  mla.bias = config.Bool("attention_bias", false);
  mla.latent_eps = latent_eps > 0 ? latent_eps : eps;
  const Json* dict = config.Raw("linear_attn_config");
  KdaSpec kda;
  std::vector<bool> is_kda;
  if (dict != nullptr && dict->is_object()) {
    ConfigReader linear(*dict, config.where() + ": linear_attn_config");
    is_kda = ReadKdaLayers(config, &linear, spec.blocks.size());
    kda = ReadKda(linear, eps, true);
    config.Fail(linear.status());
  } else {
    is_kda = ReadKdaLayers(config, nullptr, spec.blocks.size());
    kda = ReadKda(config, eps, false);
  }
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (is_kda[i]) {
      spec.blocks[i].mixer = kda;
    } else {
      spec.blocks[i].mixer = mla;
    }
  }
  config.Ignore({"rope_theta", "rope_scaling", "rope_parameters", "mla_use_nope", "layer_types",
                 "num_nextn_predict_layers", "linear_num_heads", "linear_head_dim",
                 "linear_conv_kernel_dim"});
  return spec;
}

constexpr SigmoidMoeDefaults kDefaults = {.moe_intermediate_size = 1024,
                                          .routed_scaling_factor = 1.0};

}  // namespace

ModelSpec ParseKimiLinear(ConfigReader& config) {
  ModelSpec spec = ReadKimi(config, 1e-6f);
  if (!config.status().ok()) return spec;
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 1), ReadSigmoidMoe(config, kDefaults),
           spec);
  return spec;
}

ModelSpec ParseKimiK3(ConfigReader& config) {
  ModelSpec spec = ReadKimi(config, 0.0f);
  if (!config.status().ok()) return spec;
  const float eps = spec.head.norm.eps;
  const bool gated = config.Bool("mla_use_output_gate", true);
  const int snapshot_every = ReadSize(config, {"attn_res_block_size"}, 12);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    block.residual = Residual::kAttend;
    block.snapshot = i % static_cast<size_t>(snapshot_every) == 0;
    if (MlaSpec* mla = std::get_if<MlaSpec>(&block.mixer); mla != nullptr && gated) {
      mla->gate_name = "g_proj";
    }
  }
  MoeSpec moe = ReadSigmoidMoe(config, kDefaults);
  moe.latent_size = ReadSize(config, {"routed_expert_hidden_size"}, 3584);
  moe.latent_down = "routed_expert_down_proj";
  moe.latent_up = "routed_expert_up_proj";
  if (config.Bool("latent_moe_use_norm", true)) moe.latent_norm = NormSpec{.eps = eps};
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 1), moe, spec);
  return spec;
}

}  // namespace tq

// nemotron_h: one part per layer: Mamba2, attention without rope, a squared-ReLU feed-forward, or
// experts.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"

namespace tq {
namespace {

// 'M', '*', '-', 'E' per layer, from a pattern string or a list of names.
std::string ReadPattern(ConfigReader& config) {
  const Json* pattern = config.Raw("hybrid_override_pattern");
  if (pattern != nullptr && pattern->is_string()) return pattern->get<std::string>();
  const bool listed = pattern != nullptr && pattern->is_array();
  std::string out;
  for (const std::string& name :
       config.StringList(listed ? "hybrid_override_pattern" : "layers_block_type")) {
    if (name == "M" || name == "mamba" || name == "linear_attention") {
      out += 'M';
    } else if (name == "*" || name == "attention" || name == "full_attention") {
      out += '*';
    } else if (name == "-" || name == "mlp") {
      out += '-';
    } else if (name == "E" || name == "moe") {
      out += 'E';
    } else {
      out += '?';
    }
  }
  return out;
}

Mamba2Spec ReadMamba(ConfigReader& config, float eps) {
  Mamba2Spec mamba;
  mamba.num_heads = ReadSize(config, {"mamba_num_heads"}, 128, 65536);
  mamba.head_dim = ReadSize(config, {"mamba_head_dim"}, 64, 4096);
  mamba.num_groups = ReadSize(config, {"n_groups", "mamba_n_groups"}, 8, 65536);
  mamba.state_size = ReadSize(config, {"ssm_state_size"}, 128, 4096);
  mamba.conv_kernel = ReadSize(config, {"conv_kernel", "mamba_d_conv"}, 4, 64);
  mamba.conv_bias = config.Bool("use_conv_bias", config.Bool("mamba_conv_bias", true));
  mamba.proj_bias = config.Bool("use_bias", config.Bool("mamba_proj_bias", false));
  mamba.norm_eps = eps;
  if (mamba.num_heads % mamba.num_groups != 0) {
    config.Fail(Corrupt(config.where() + ": expected mamba_num_heads divisible by n_groups"));
  }
  const char* key = config.Has("time_step_limit") ? "time_step_limit" : "mamba_dt_limit";
  const Json* limit = config.Raw(key);
  if (limit != nullptr && limit->is_array() && limit->size() == 2) {
    // The upper one is often infinite, spelled as an object; so anything but a number is no limit.
    const Json& low = (*limit)[0];
    const Json& high = (*limit)[1];
    if (low.is_number()) mamba.time_step_min = low.get<float>();
    if (high.is_number()) mamba.time_step_max = high.get<float>();
  }
  // The reference clips at time_step_min whatever the limit says.
  mamba.time_step_min =
      std::max(mamba.time_step_min, static_cast<float>(config.Number("time_step_min", 0.0)));
  config.Ignore({"time_step_max", "time_step_floor", "time_step_rank", "chunk_size",
                 "mamba_chunk_size", "expand", "mamba_hidden_act", "mamba_ssm_cache_dtype",
                 "use_mamba_kernels", "rescale_prenorm_residual", "residual_in_fp32",
                 "num_logits_to_keep", "mtp_layers_block_type", "moe_shared_expert_overlap",
                 "mtp_hybrid_override_pattern", "use_bias", "mamba_proj_bias"});
  return mamba;
}

MoeSpec ReadExperts(ConfigReader& config, const DenseFfnSpec& dense) {
  MoeSpec moe =
      ReadSigmoidMoe(config, {.num_experts = 8, .top_k = 2, .moe_intermediate_size = 7688});
  const int64_t width = moe.expert.intermediate_size;
  const int shared = ReadSize(config, {"moe_shared_expert_intermediate_size"}, 7688);
  moe.expert = dense;
  moe.expert.intermediate_size = width;
  moe.shared = dense;
  moe.shared.intermediate_size = shared;
  if (config.Has("moe_latent_size")) {
    moe.latent_size = ReadSize(config, {"moe_latent_size"}, 1);
    moe.latent_down = "fc1_latent_proj";
    moe.latent_up = "fc2_latent_proj";
  }
  return moe;
}

}  // namespace

ModelSpec ParseNemotronH(ConfigReader& config) {
  const std::string pattern = ReadPattern(config);
  const DecoderDefaults defaults = {.rms_norm_eps = 1e-5f,
                                    .head_dim = 128,
                                    .num_hidden_layers = static_cast<int64_t>(pattern.size()),
                                    .intermediate_size = 21504,
                                    .eps_key = "layer_norm_epsilon",
                                    .activation_key = ""};
  ModelSpec spec = ReadDecoder(config, defaults);
  if (!config.status().ok()) return spec;
  if (spec.blocks.size() != pattern.size()) {
    config.Fail(Corrupt(config.where() +
                        ": expected one entry of hybrid_override_pattern (or "
                        "layers_block_type) per layer, found " +
                        std::to_string(pattern.size())));
    return spec;
  }
  if (config.String("mlp_hidden_act", "relu2") != "relu2") {
    config.Fail(Unsupported(config.where() + ": mlp_hidden_act: expected relu2"));
  }
  DenseFfnSpec dense = DenseOf(spec.blocks[0]);
  dense.gated = false;
  dense.bias = config.Bool("mlp_bias", false);
  AttentionSpec attention = AttentionOf(spec.blocks[0]);
  attention.rope = -1;
  const bool bias = config.Bool("attention_bias", false);
  attention.q_bias = attention.k_bias = attention.v_bias = attention.o_bias = bias;
  attention.sliding_window = static_cast<int>(config.Int("sliding_window", 0));
  const Mamba2Spec mamba = ReadMamba(config, spec.head.norm.eps);
  const MoeSpec moe = ReadExperts(config, dense);
  for (size_t i = 0; i < pattern.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    block.residual = Residual::kSingle;
    block.mixer_name = block.ffn_name = "mixer.";
    block.mixer = std::monostate{};
    block.ffn = std::monostate{};
    switch (pattern[i]) {
      case 'M':
        block.mixer = mamba;
        break;
      case '*':
        block.mixer = attention;
        break;
      case '-':
        block.ffn = dense;
        break;
      case 'E':
        block.ffn = moe;
        break;
      default:
        config.Fail(Corrupt(config.where() +
                            ": hybrid_override_pattern: expected M, *, - or E for "
                            "layer " +
                            std::to_string(i)));
        return spec;
    }
  }
  return spec;
}

}  // namespace tq

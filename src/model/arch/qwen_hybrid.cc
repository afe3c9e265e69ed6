#include "model/arch/qwen_hybrid.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "model/rope.h"

namespace tq {
namespace {

GatedDeltaNetSpec ReadDeltaNet(ConfigReader& config, float eps) {
  GatedDeltaNetSpec out;
  out.num_key_heads = ReadSize(config, {"linear_num_key_heads"}, 16, 4096);
  out.num_value_heads = ReadSize(config, {"linear_num_value_heads"}, 32, 4096);
  out.key_head_dim = ReadSize(config, {"linear_key_head_dim"}, 128, 1024);
  out.value_head_dim = ReadSize(config, {"linear_value_head_dim"}, 128, 1024);
  out.conv_kernel = ReadSize(config, {"linear_conv_kernel_dim"}, 4, 64);
  out.norm_eps = eps;
  if (out.num_value_heads % out.num_key_heads != 0) {
    config.Fail(Corrupt(config.where() +
                        ": expected linear_num_value_heads divisible by "
                        "linear_num_key_heads, found " +
                        std::to_string(out.num_value_heads) + " and " +
                        std::to_string(out.num_key_heads)));
  }
  return out;
}

// true: attention, false: linear attention.
std::vector<bool> ReadPattern(ConfigReader& config, size_t num_layers,
                              std::initializer_list<std::string_view> attention_names) {
  std::vector<bool> out(num_layers);
  const int64_t interval = ReadSize(config, {"full_attention_interval"}, 4);
  for (size_t i = 0; i < num_layers; ++i) out[i] = (static_cast<int64_t>(i) + 1) % interval == 0;
  if (!config.Has("layer_types")) return out;
  const std::vector<std::string> names = config.StringList("layer_types");
  for (size_t i = 0; i < num_layers; ++i) {
    const std::string name = i < names.size() ? names[i] : "";
    const bool other =
        std::find(attention_names.begin(), attention_names.end(), name) != attention_names.end();
    out[i] = name == "full_attention" || other;
    if (!out[i] && name != "linear_attention") {
      config.Fail(Unsupported(config.where() +
                              ": layer_types: expected full_attention or "
                              "linear_attention for layer " +
                              std::to_string(i) + ", found \"" + name + "\""));
    }
  }
  return out;
}

}  // namespace

ModelSpec ReadQwenHybrid(ConfigReader& config, bool fused_projections,
                         std::initializer_list<std::string_view> attention_names) {
  ModelSpec spec = ReadDecoder(config, {.head_dim = 256, .intermediate_size = 1});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {.theta = 10000.0,
                          .max_position_embeddings = spec.max_position_embeddings,
                          .partial_rotary_factor = 0.25})};
  const bool bias = config.Bool("attention_bias", false);
  GatedDeltaNetSpec linear = ReadDeltaNet(config, spec.head.norm.eps);
  linear.fused_projections = fused_projections;
  const std::vector<bool> attention = ReadPattern(config, spec.blocks.size(), attention_names);
  spec.head.norm.plus_one = true;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    block.norm.plus_one = true;
    if (!attention[i]) {
      block.mixer = linear;
      block.mixer_name = "linear_attn.";
      continue;
    }
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.qk_norm = block.norm;
    mixer.gate = OutputGate::kSigmoidInQ;
  }
  config.Ignore({"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype",
                 "attn_output_gate"});
  return spec;
}

}  // namespace tq

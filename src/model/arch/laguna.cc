// laguna: full and sliding layers with their own rope and head count, gated attention, sigmoid
// experts.
#include <cmath>

#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"
#include "model/rope.h"

namespace tq {
namespace {

// ropes[0] serves full layers, ropes[1] sliding ones.
void ReadRopes(ConfigReader& config, int head_dim, ModelSpec& spec) {
  const RopeDefaults defaults = {.max_position_embeddings = spec.max_position_embeddings};
  spec.ropes = {
      RopeFromDict(config, RopeDictOf(config, "full_attention"), 500000.0, head_dim, defaults),
      RopeFromDict(config, RopeDictOf(config, "sliding_attention"), 10000.0, head_dim, defaults)};
}

OutputGate ReadGate(ConfigReader& config) {
  const Json* gating = config.Raw("gating");
  if (gating == nullptr) return OutputGate::kSoftplusPerHead;
  if (gating->is_boolean()) {
    return gating->get<bool>() ? OutputGate::kSoftplusPerHead : OutputGate::kNone;
  }
  const std::string name = gating->is_string() ? gating->get<std::string>() : "";
  if (name == "per-head") return OutputGate::kSoftplusPerHead;
  if (name == "per-element") return OutputGate::kSoftplus;
  config.Fail(Unsupported(config.where() +
                          ": gating: expected true, \"per-head\", \"per-element\" or "
                          "false, found " +
                          gating->dump()));
  return OutputGate::kNone;
}

MoeSpec ReadExperts(ConfigReader& config) {
  MoeSpec moe = ReadQwenMoe(config, true, true);
  moe.shared_gate = false;
  moe.selection_bias = true;
  const std::string score = config.String("moe_router_score_func", "sigmoid");
  moe.router.score = score == "sqrtsoftplus" ? RouterScore::kSqrtSoftplus : RouterScore::kSigmoid;
  if (score != "sigmoid" && score != "sqrtsoftplus") {
    config.Fail(Unsupported(config.where() +
                            ": moe_router_score_func: expected sigmoid or "
                            "sqrtsoftplus, found \"" +
                            score + "\""));
  }
  moe.router.renormalize = true;
  moe.router.scale = static_cast<float>(config.Number("moe_routed_scaling_factor", 1.0));
  moe.router.logit_cap = static_cast<float>(config.Number("moe_router_logit_softcapping", 0.0));
  if (config.Bool("moe_apply_router_weight_on_input", false)) {
    config.Fail(
        Unsupported(config.where() + ": moe_apply_router_weight_on_input is not supported"));
  }
  moe.router_bias = config.Bool("moe_router_bias", false);
  return moe;
}

}  // namespace

ModelSpec ParseLaguna(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {.head_dim = 128,
                                        .num_attention_heads = 48,
                                        .num_key_value_heads = 8,
                                        .intermediate_size = 8192});
  if (!config.status().ok()) return spec;
  ReadRopes(config, AttentionOf(spec.blocks[0]).head_dim, spec);
  const size_t layers = spec.blocks.size();
  const std::vector<bool> sliding =
      ReadSlidingLayers(config, layers, std::vector<bool>(layers, false));
  const int window = ReadSize(config, {"sliding_window"}, 512, int64_t{1} << 30);
  const std::vector<int64_t> heads = config.IntList("num_attention_heads_per_layer");
  const OutputGate gate = ReadGate(config);
  const bool sinks = config.Bool("swa_attention_sink_enabled", false);
  const bool bias = config.Bool("attention_bias", false);
  for (size_t i = 0; i < layers; ++i) {
    AttentionSpec& mixer = AttentionOf(spec.blocks[i]);
    if (!heads.empty()) {
      const int64_t n = i < heads.size() ? heads[i] : 0;
      if (n < 1 || n > 65536 || n % mixer.num_key_value_heads != 0) {
        config.Fail(Corrupt(config.where() +
                            ": num_attention_heads_per_layer: expected a multiple of "
                            "num_key_value_heads for layer " +
                            std::to_string(i) + ", found " + std::to_string(n)));
        return spec;
      }
      mixer.num_attention_heads = static_cast<int>(n);
    }
    mixer.qk_norm = spec.blocks[i].norm;
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.rope = sliding[i] ? 1 : 0;
    mixer.sliding_window = sliding[i] ? window : 0;
    mixer.gate = gate;
    mixer.gate_name = "g_proj";
    if (sinks && sliding[i]) mixer.sinks = "sink";
  }
  ApplyMoe(ReadSparseLayers(config, layers, 1), ReadExperts(config), spec);
  return spec;
}

}  // namespace tq

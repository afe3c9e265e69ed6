// gemma4_text and diffusion_gemma (text part): Gemma 3's shape with plain norms, a norm of the
// values, scores without scale, proportional rope on full layers, optional experts beside the dense
// part, per-layer embeddings and K and V shared between layers.
#include <cmath>

#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"
#include "model/rope.h"
#include "tensor/half.h"

namespace tq {
namespace {

struct Layers {
  std::vector<bool> sliding;
  int sliding_window = 0;
};

// ropes[0] serves full layers of the usual head size, ropes[1] sliding ones. Full layers may have
// another head size; each size gets a rope of its own.
int FullRope(ConfigReader& config, int head_dim, std::vector<int>& sizes, ModelSpec& spec) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == head_dim) return static_cast<int>(i) + 1;
  }
  const RopeDefaults defaults = {1e6, spec.max_position_embeddings, 0.25};
  spec.ropes.push_back(
      RopeFromDict(config, RopeDictOf(config, "full_attention"), 1e6, head_dim, defaults));
  sizes.push_back(head_dim);
  return static_cast<int>(sizes.size());
}

RopeSpec SlidingRope(ConfigReader& config, int head_dim, int64_t max_positions) {
  const Json* own = RopeDictOf(config, "sliding_attention");
  Json dict = own != nullptr ? *own : Json::object();
  if (dict.is_object()) dict.erase("partial_rotary_factor");  // not applied to this type
  return RopeFromDict(config, &dict, 1e4, head_dim, {1e4, max_positions});
}

// The size of one layer: per_layer_config where the key exists, else the two global_* keys.
struct LayerSize {
  int head_dim;
  int num_kv_heads;
};
LayerSize ReadLayerSize(ConfigReader& config, size_t layer, bool full, LayerSize base,
                        bool k_eq_v) {
  LayerSize out = base;
  const Json* all = config.Raw("per_layer_config");
  const int global_dim = ReadSize(config, {"global_head_dim"}, 512, 1024);
  const int global_heads =
      ReadSize(config, {"num_global_key_value_heads"}, base.num_kv_heads, 65536);
  if (all == nullptr) {
    if (full) out.head_dim = global_dim;
    if (full && k_eq_v) out.num_kv_heads = global_heads;
    return out;
  }
  const std::string key = std::to_string(layer);
  if (!all->is_object() || !all->contains(key)) return out;
  ConfigReader one((*all)[key], config.where() + ": per_layer_config: " + key);
  out.head_dim = ReadSize(one, {"head_dim"}, base.head_dim, 1024);
  out.num_kv_heads = ReadSize(one, {"num_key_value_heads"}, base.num_kv_heads, 65536);
  config.Fail(one.status());
  return out;
}

MoeSpec ReadExperts(ConfigReader& config, const DenseFfnSpec& dense, float eps) {
  MoeSpec moe;
  moe.router.score = RouterScore::kSoftmax;
  moe.router.renormalize = true;
  moe.router.num_experts = ReadSize(config, {"num_experts"}, 128, 8192);
  moe.router.top_k = ReadSize(config, {"top_k_experts"}, 8, 8192);
  if (moe.router.top_k > moe.router.num_experts) {
    config.Fail(Corrupt(config.where() + ": top_k_experts: expected at most num_experts"));
  }
  moe.router_name = "router.proj";
  moe.scaled_router = true;
  moe.router_eps = eps;
  moe.expert = dense;
  moe.expert.intermediate_size = ReadSize(config, {"moe_intermediate_size"}, 704);
  return moe;
}

void ShareKv(ConfigReader& config, const std::vector<bool>& sliding, ModelSpec& spec) {
  const auto layers = static_cast<int64_t>(spec.blocks.size());
  const int64_t shared = config.Int("num_kv_shared_layers", 0);
  const bool wide = config.Bool("use_double_wide_mlp", false);
  if (shared < 0 || shared >= layers) {
    config.Fail(Corrupt(config.where() + ": num_kv_shared_layers: expected 0.." +
                        std::to_string(layers - 1) + ", found " + std::to_string(shared)));
    return;
  }
  for (int64_t i = layers - shared; i < layers; ++i) {
    BlockSpec& block = spec.blocks[static_cast<size_t>(i)];
    int64_t source = layers - shared - 1;
    while (source >= 0 && sliding[static_cast<size_t>(source)] != sliding[static_cast<size_t>(i)])
      --source;
    if (source < 0) {
      config.Fail(Corrupt(config.where() + ": layer " + std::to_string(i) +
                          " shares K and V, but no earlier layer of its kind owns any"));
      return;
    }
    AttentionOf(block).kv_layer = static_cast<int>(source);
    if (wide) DenseOf(block).intermediate_size *= 2;
  }
}

ModelSpec ReadGemma4(ConfigReader& config, bool always_experts) {
  ModelSpec spec = ReadDecoder(config, {.head_dim = 256,
                                        .num_attention_heads = 8,
                                        .num_key_value_heads = 4,
                                        .activation_key = "hidden_activation",
                                        .activation = "gelu_pytorch_tanh"});
  if (!config.status().ok()) return spec;
  const float eps = spec.head.norm.eps;
  const double root = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.embed_scale = Bf16ToF32(F32ToBf16(static_cast<float>(root)));
  spec.head.final_logit_softcapping =
      static_cast<float>(config.Number("final_logit_softcapping", 0));
  const size_t layers = spec.blocks.size();
  std::vector<bool> fallback;
  for (size_t i = 0; i < layers; ++i) fallback.push_back((i + 1) % 6 != 0);
  std::vector<bool> sliding = ReadSlidingLayers(config, layers, fallback);
  sliding[layers - 1] = false;  // the reference forces it
  const int window = ReadSize(config, {"sliding_window"}, 512, int64_t{1} << 30);
  const bool bias = config.Bool("attention_bias", false);
  const bool k_eq_v = config.Bool("attention_k_eq_v", false);
  const LayerSize base = {AttentionOf(spec.blocks[0]).head_dim,
                          AttentionOf(spec.blocks[0]).num_key_value_heads};
  spec.ropes = {SlidingRope(config, base.head_dim, spec.max_position_embeddings)};
  std::vector<int> full_sizes;
  const bool experts = config.Bool("enable_moe_block", false) || always_experts;
  for (size_t i = 0; i < layers; ++i) {
    BlockSpec& block = spec.blocks[i];
    block.residual = Residual::kSandwich;
    block.layer_scalar = block.prefix + "layer_scalar";
    AttentionSpec& mixer = AttentionOf(block);
    const LayerSize size = ReadLayerSize(config, i, !sliding[i], base, k_eq_v);
    mixer.head_dim = size.head_dim;
    mixer.num_key_value_heads = size.num_kv_heads;
    if (size.head_dim % 2 != 0 || mixer.num_attention_heads % size.num_kv_heads != 0) {
      config.Fail(Corrupt(config.where() + ": layer " + std::to_string(i) +
                          ": expected an even "
                          "head_dim and num_attention_heads divisible by its KV heads"));
      return spec;
    }
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.qk_norm = block.norm;
    mixer.v_norm = NormSpec{.eps = eps, .weight = false};
    mixer.v_from_k = !sliding[i] && k_eq_v;
    mixer.scale = 1.0f;
    mixer.sliding_window = sliding[i] ? window : 0;
    mixer.rope = sliding[i] ? 0 : FullRope(config, size.head_dim, full_sizes, spec);
    if (experts) block.parallel_ffn = ReadExperts(config, DenseOf(block), eps);
  }
  ShareKv(config, sliding, spec);
  return spec;
}

}  // namespace

ModelSpec ParseGemma4Text(ConfigReader& config) {
  ModelSpec spec = ReadGemma4(config, false);
  if (!config.status().ok()) return spec;
  const std::string bidirectional = config.String("use_bidirectional_attention", "vision");
  if (bidirectional != "vision") {  // that one is about images alone
    config.Fail(Unsupported(config.where() +
                            ": use_bidirectional_attention: expected \"vision\", found \"" +
                            bidirectional + "\""));
  }
  const int64_t width = config.Int("hidden_size_per_layer_input", 256);
  spec.per_layer_vocab = ReadSize(config, {"vocab_size_per_layer_input"}, 262144, int64_t{1} << 24);
  if (width < 0 || width > 65536) {
    config.Fail(Corrupt(config.where() +
                        ": hidden_size_per_layer_input: expected 0..65536, found " +
                        std::to_string(width)));
  }
  spec.per_layer_input = width;
  if (width > 0 && spec.per_layer_vocab < spec.vocab_size) {
    config.Fail(
        Unsupported(config.where() + ": vocab_size_per_layer_input: expected at least vocab_size"));
  }
  for (BlockSpec& block : spec.blocks) block.per_layer_input = width;
  config.Ignore({"num_experts", "top_k_experts", "moe_intermediate_size", "global_head_dim",
                 "num_global_key_value_heads"});
  return spec;
}

ModelSpec ParseDiffusionGemma(ConfigReader& config) {
  ModelSpec spec = ReadGemma4(config, true);
  if (!config.status().ok()) return spec;
  spec.self_conditioning = DenseOf(spec.blocks[0]);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    block.causal_scalar = "model.encoder_layers." + std::to_string(i) + ".layer_scalar";
    AttentionSpec& mixer = AttentionOf(block);
    mixer.v_from_k = mixer.sliding_window == 0 && config.Bool("attention_k_eq_v", true);
  }
  config.Ignore({"use_bidirectional_attention", "num_kv_shared_layers", "use_double_wide_mlp"});
  return spec;
}

}  // namespace tq

// gemma3_text: four norms per block stored as w - 1, scaled embeddings, local and global rope.
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/arch/decoder_config.h"
#include "model/rope.h"
#include "tensor/half.h"

namespace tq {
namespace {

// ropes[0] serves full layers, ropes[1] sliding ones.
void ReadRopes(ConfigReader& config, int head_dim, ModelSpec& spec) {
  const double theta = config.Number("rope_theta", 1e6);
  const double local_theta = config.Number("rope_local_base_freq", 1e4);
  const RopeDefaults defaults{theta, spec.max_position_embeddings};
  const Json* full = config.Raw("rope_scaling");
  if (const Json* own = RopeDictOf(config, "full_attention")) full = own;
  const Json* local = RopeDictOf(config, "sliding_attention");
  spec.ropes = {RopeFromDict(config, full, theta, head_dim, defaults),
                RopeFromDict(config, local, local_theta, head_dim, defaults)};
}

}  // namespace

ModelSpec ParseGemma3Text(ConfigReader& config) {
  const DecoderDefaults defaults{.head_dim = 256,
                                 .num_attention_heads = 8,
                                 .num_key_value_heads = 4,
                                 .activation_key = "hidden_activation",
                                 .activation = "gelu_pytorch_tanh"};
  ModelSpec spec = ReadDecoder(config, defaults);
  if (!config.status().ok()) return spec;
  const int head_dim = AttentionOf(spec.blocks[0]).head_dim;
  ReadRopes(config, head_dim, spec);
  // The reference multiplies by sqrt(hidden_size) in the embedding's type, bf16.
  const double root = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.embed_scale = Bf16ToF32(F32ToBf16(static_cast<float>(root)));
  spec.head.norm.plus_one = true;
  const double attn_cap = config.Number("attn_logit_softcapping", 0);
  if (attn_cap != 0) {
    config.Fail(Unsupported(config.where() + ": attn_logit_softcapping is not supported"));
  }
  spec.head.final_logit_softcapping =
      static_cast<float>(config.Number("final_logit_softcapping", 0));
  if (config.Bool("use_bidirectional_attention", false)) {
    config.Fail(Unsupported(config.where() + ": use_bidirectional_attention is not supported"));
  }
  const double query_scalar = config.Number("query_pre_attn_scalar", 256);
  const bool bias = config.Bool("attention_bias", false);
  const int64_t pattern =
      config.Int("sliding_window_pattern", config.Int("_sliding_window_pattern", 6));
  const auto window = static_cast<int>(config.Int("sliding_window", 4096));
  if (pattern < 1 || window < 1 || !(query_scalar > 0)) {
    config.Fail(Corrupt(
        config.where() +
        ": expected sliding_window_pattern, sliding_window and query_pre_attn_scalar above 0"));
    return spec;
  }
  std::vector<bool> fallback;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    fallback.push_back((static_cast<int64_t>(i) + 1) % pattern != 0);
  }
  const std::vector<bool> sliding = ReadSlidingLayers(config, spec.blocks.size(), fallback);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    block.residual = Residual::kSandwich;
    block.norm.plus_one = true;
    block.post_norm.plus_one = true;
    AttentionSpec& mixer = AttentionOf(block);
    mixer.qk_norm = block.norm;
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.scale = static_cast<float>(1.0 / std::sqrt(query_scalar));
    mixer.rope = sliding[i] ? 1 : 0;
    mixer.sliding_window = sliding[i] ? window : 0;
  }
  return spec;
}

}  // namespace tq

// gpt_oss: alternating windows, sinks, biases everywhere, experts with a clamped activation.
#include <nlohmann/json.hpp>

#include "model/arch/moe_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseGptOss(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {.rms_norm_eps = 1e-5f, .head_dim = 64});
  if (!config.status().ok()) return spec;
  spec.ropes = {ReadRope(config, AttentionOf(spec.blocks[0]).head_dim,
                         {150000.0, spec.max_position_embeddings})};
  const bool bias = config.Bool("attention_bias", true);
  const int window = ReadSize(config, {"sliding_window"}, 128, int64_t{1} << 30);
  std::vector<bool> fallback;
  for (size_t i = 0; i < spec.blocks.size(); ++i) fallback.push_back(i % 2 == 0);
  const std::vector<bool> sliding = ReadSlidingLayers(config, spec.blocks.size(), fallback);
  MoeSpec moe = ReadQwenMoe(config, false, true);
  moe.router.top_k = ReadSize(config, {"num_experts_per_tok", "experts_per_token"}, 4, 128);
  moe.router.score = RouterScore::kSoftmaxTopK;
  moe.router.renormalize = false;
  moe.router_name = "router";
  moe.router_bias = true;
  moe.expert.intermediate_size = DenseOf(spec.blocks[0]).intermediate_size;
  moe.expert.activation = Activation::kClampedSilu;
  moe.expert.alpha = 1.702f;
  moe.expert.limit = static_cast<float>(config.Number("swiglu_limit", 7.0));
  moe.expert.bias = true;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.sinks = "sinks";
    mixer.sliding_window = sliding[i] ? window : 0;
    block.ffn = moe;
  }
  config.Ignore({"initial_context_length", "swiglu_alpha"});
  return spec;
}

}  // namespace tq

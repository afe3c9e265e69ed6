// muse_glimmer (text part): norms of embeddings, queries and keys without weights, sandwich norms,
// rope on some layers only, a sigmoid gate on attention, scaled and capped logits.
#include <cmath>

#include <nlohmann/json.hpp>

#include "model/arch/decoder_config.h"
#include "model/rope.h"

namespace tq {

ModelSpec ParseMuseGlimmer(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(
      config, {.rms_norm_eps = 1e-5f, .head_dim = 128, .activation_key = "hidden_activation"});
  if (!config.status().ok()) return spec;
  const float eps = spec.head.norm.eps;
  const auto post_eps = static_cast<float>(config.Number("post_norm_eps", 1e-8));
  spec.embed_norm = NormSpec{.eps = eps, .weight = false};
  spec.head.logit_scale =
      static_cast<float>(config.Number("output_multiplier", 0.19611613513818404));
  spec.head.final_logit_softcapping =
      static_cast<float>(config.Number("final_logit_softcapping", 20.0));
  const size_t layers = spec.blocks.size();
  std::vector<bool> fallback;
  for (size_t i = 0; i < layers; ++i) fallback.push_back((layers - 1 - i) % 4 != 0);
  const std::vector<bool> sliding = ReadSlidingLayers(config, layers, fallback);
  const int window = ReadSize(config, {"sliding_window"}, 2048, int64_t{1} << 30);
  const auto multiplier = static_cast<float>(config.Number("qk_scale_factor", 3.87));
  // One theta per layer, 0: no rope. All others must agree, since rope_parameters holds one.
  std::vector<bool> rotates = sliding;
  double theta = 500000.0;
  if (const Json* thetas = config.Raw("layer_rope_theta");
      thetas != nullptr && thetas->is_array()) {
    for (size_t i = 0; i < layers && i < thetas->size(); ++i) {
      const Json& value = (*thetas)[i];
      rotates[i] = value.is_number() && value.get<double>() != 0;
      if (rotates[i]) theta = value.get<double>();
    }
    for (size_t i = 0; i < layers && i < thetas->size(); ++i) {
      const Json& value = (*thetas)[i];
      if (rotates[i] && value.get<double>() != theta) {
        config.Fail(Unsupported(config.where() +
                                ": layer_rope_theta: expected one value or 0, found " +
                                thetas->dump()));
      }
    }
  }
  spec.ropes = {RopeFromDict(config, nullptr, theta, AttentionOf(spec.blocks[0]).head_dim,
                             {theta, spec.max_position_embeddings})};
  config.Ignore({"rope_parameters", "rope_theta"});
  const bool bias = config.Bool("attention_bias", false);
  for (size_t i = 0; i < layers; ++i) {
    BlockSpec& block = spec.blocks[i];
    block.residual = Residual::kSandwich;
    block.norm.plus_one = true;
    block.post_norm = {.eps = post_eps, .plus_one = true};
    AttentionSpec& mixer = AttentionOf(block);
    mixer.q_bias = mixer.k_bias = mixer.v_bias = mixer.o_bias = bias;
    mixer.qk_norm = NormSpec{.eps = eps, .weight = false};
    mixer.q_multiplier = multiplier;
    mixer.rope = rotates[i] ? 0 : -1;
    mixer.sliding_window = sliding[i] ? window : 0;
    mixer.gate = OutputGate::kSigmoid;
  }
  return spec;
}

}  // namespace tq

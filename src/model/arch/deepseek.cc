// deepseek_v2, deepseek_v3 (also Kimi K2), deepseek_v32: latent attention, dense layers first, then
// experts; v32 attends to the tokens that an indexer picks.
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/math.h"
#include "model/arch/mla_config.h"
#include "model/arch/moe_config.h"
#include "model/rope.h"

namespace tq {
namespace {

// yarn's second magnitude goes into the softmax scale, squared.
float YarnScore(ConfigReader& config, float scale) {
  const Json* dict = config.Raw("rope_parameters");
  const Json* scaling = config.Raw("rope_scaling");
  if (dict == nullptr) dict = scaling;
  if (dict == nullptr || !dict->is_object()) return scale;
  ConfigReader rope(*dict, config.where() + ": rope");
  const double mscale = rope.Number("mscale_all_dim", 0);
  const double factor = rope.Number("factor", 1);
  config.Fail(rope.status());
  if (mscale == 0 || factor <= 1) return scale;
  const double magnitude = 0.1 * mscale * LogF64(factor) + 1.0;
  return static_cast<float>(static_cast<double>(scale) * magnitude * magnitude);
}

// Sizes, rope and latent attention of every layer.
ModelSpec ReadDeepseek(ConfigReader& config) {
  ModelSpec spec = ReadDecoder(config, {.head_dim = 64});
  if (!config.status().ok()) return spec;
  MlaSpec mla = ReadMla(config, AttentionOf(spec.blocks[0]).num_attention_heads, 0);
  spec.ropes = {ReadRope(config, mla.qk_rope_head_dim, {10000.0, spec.max_position_embeddings})};
  mla.scale = YarnScore(config, mla.scale);
  mla.bias = config.Bool("attention_bias", false);
  mla.interleaved = config.Bool("rope_interleave", true);
  for (BlockSpec& block : spec.blocks) block.mixer = mla;
  const bool mlp_bias = config.Bool("mlp_bias", false);
  for (BlockSpec& block : spec.blocks) DenseOf(block).bias = mlp_bias;
  return spec;
}

constexpr SigmoidMoeDefaults kV3 = {.routed_scaling_factor = 2.5};

}  // namespace

ModelSpec ParseDeepseekV2(ConfigReader& config) {
  ModelSpec spec = ReadDeepseek(config);
  if (!config.status().ok()) return spec;
  const std::string method = config.String("topk_method", "greedy");
  const bool greedy = method == "greedy" || method == "gready";
  if (!greedy && method != "group_limited_greedy") {
    config.Fail(Unsupported(config.where() +
                            ": topk_method: expected greedy or "
                            "group_limited_greedy, found \"" +
                            method + "\""));
  }
  const std::string scoring = config.String("scoring_func", "softmax");
  if (scoring != "softmax") {
    config.Fail(Unsupported(config.where() + ": scoring_func: expected softmax, found \"" +
                            scoring + "\""));
  }
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 0), ReadGroupSoftmaxMoe(config, greedy),
           spec);
  return spec;
}

ModelSpec ParseDeepseekV3(ConfigReader& config) {
  ModelSpec spec = ReadDeepseek(config);
  if (!config.status().ok()) return spec;
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 3), ReadSigmoidMoe(config, kV3), spec);
  return spec;
}

ModelSpec ParseDeepseekV32(ConfigReader& config) {
  ModelSpec spec = ParseDeepseekV3(config);
  if (!config.status().ok()) return spec;
  TokenIndexSpec indexer;
  indexer.num_heads = ReadSize(config, {"index_n_heads"}, 64, 4096);
  indexer.head_dim = ReadSize(config, {"index_head_dim"}, 128, 1024);
  indexer.top_k = ReadSize(config, {"index_topk"}, 2048, int64_t{1} << 30);
  indexer.interleaved = config.Bool("indexer_rope_interleave", false);
  for (BlockSpec& block : spec.blocks) {
    MlaSpec& mla = std::get<MlaSpec>(block.mixer);
    mla.indexer = indexer;
    if (mla.q_lora_rank == 0) {
      config.Fail(Unsupported(config.where() + ": expected q_lora_rank above 0 for an indexer"));
    }
  }
  config.Ignore({"layer_types"});
  return spec;
}

}  // namespace tq

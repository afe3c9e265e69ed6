// qwen4_exp (text part): the qwen hybrid on several residual streams, block-sparse attention,
// n-gram embeddings.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "model/arch/qwen_hybrid.h"

namespace tq {
namespace {

BlockIndexSpec ReadIndexer(ConfigReader& config, const NormSpec& norm) {
  BlockIndexSpec index;
  index.num_heads = ReadSize(config, {"indexer_n_heads"}, 4, 4096);
  index.head_dim = ReadSize(config, {"indexer_head_dim"}, 128, 1024);
  index.block = ReadSize(config, {"indexer_compress_ratio"}, 4, 64);
  index.budget = ReadSize(config, {"indexer_budget"}, 2048, int64_t{1} << 30);
  index.norm = norm;
  if (config.Int("indexer_kv_heads", 1) != 1 || 64 % index.block != 0 || index.head_dim % 2 != 0 ||
      index.budget < index.block) {
    config.Fail(
        Unsupported(config.where() +
                    ": expected indexer_kv_heads 1, an even indexer_head_dim, "
                    "an indexer_compress_ratio that divides 64 and a budget of one block or "
                    "more"));
  }
  return index;
}

NgramSpec ReadNgrams(ConfigReader& config, int64_t hidden) {
  NgramSpec out;
  out.embed_dim = ReadSize(config, {"ple_embed_dim"}, hidden);
  out.conv_kernel = ReadSize(config, {"ple_conv_kernel_size"}, 4, 64);
  out.ngram_size = ReadSize(config, {"ngram_size"}, 3, 16);
  out.heads_per_ngram = ReadSize(config, {"heads_per_ngram"}, 8, 64);
  out.num_shards = ReadSize(config, {"split_ngram_parts"}, 512, 4096);
  const int64_t base = ReadSize(config, {"ngram_vocab_size_base"}, 20000000, int64_t{1} << 30);
  const int64_t unit =
      ReadSize(config, {"make_ngram_vocab_size_divisible_by"}, 128, int64_t{1} << 20);
  const int heads = (out.ngram_size - 1) * out.heads_per_ngram;
  if (heads < 1 || out.embed_dim % heads != 0) {
    config.Fail(Corrupt(config.where() + ": ple_embed_dim: expected a multiple of " +
                        std::to_string(heads) + " hash heads, found " +
                        std::to_string(out.embed_dim)));
    return out;
  }
  out.first_prime_at = base;
  out.rows_multiple = unit;
  const Json* eos = config.Raw("eos_token_id");
  if (eos != nullptr && eos->is_array() && !eos->empty()) eos = &(*eos)[0];
  if (eos == nullptr || !eos->is_number_integer()) {
    config.Fail(
        Corrupt(config.where() + ": eos_token_id: expected an id (n-grams are padded with it)"));
    return out;
  }
  out.padding_id = eos->get<int32_t>();
  return out;
}

}  // namespace

ModelSpec ParseQwen4Exp(ConfigReader& config) {
  ModelSpec spec = ReadQwenHybrid(
      config, false, {"qwen_sparse_attention", "deepseek_sparse_attention", "hybrid_indexed"});
  if (!config.status().ok()) return spec;
  spec.num_streams = ReadSize(config, {"hc_count"}, 4, 64);
  spec.hyper_rank = ReadSize(config, {"hc_lowrank"}, 320);
  const NormSpec norm = spec.blocks[0].norm;
  spec.hyper_norm = norm;
  const BlockIndexSpec index = ReadIndexer(config, norm);
  const std::string gate = config.String("output_gate_type", config.String("hidden_act", "silu"));
  if (gate != "silu" && gate != "sigmoid") {
    config.Fail(Unsupported(
        config.where() + ": output_gate_type: expected silu or sigmoid, found \"" + gate + "\""));
  }
  const std::vector<int64_t> ngram_layers = config.IntList("ple_layer_ids");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    block.residual = Residual::kHyper;
    if (auto* linear = std::get_if<GatedDeltaNetSpec>(&block.mixer)) {
      linear->gate = gate == "sigmoid" ? Activation::kSigmoid : Activation::kSilu;
    } else {
      AttentionOf(block).indexer = index;
    }
    const auto layer = static_cast<int64_t>(i) + 1;  // ids count from 1
    const auto found = std::find(ngram_layers.begin(), ngram_layers.end(), layer);
    if (found == ngram_layers.end()) continue;
    block.ngram = ReadNgrams(config, spec.hidden_size);
    block.ngram->ordinal = static_cast<int>(found - ngram_layers.begin());
  }
  ApplyMoe(ReadSparseLayers(config, spec.blocks.size(), 0), ReadQwenMoe(config, true, true), spec);
  config.Ignore({"number_of_conv_states", "seed", "ple_embed_dim", "ple_conv_kernel_size",
                 "ngram_size", "heads_per_ngram", "split_ngram_parts", "ngram_vocab_size_base",
                 "make_ngram_vocab_size_divisible_by"});
  return spec;
}

}  // namespace tq

// ModelSpec: a model as data. An arch file turns config.json into this list of blocks; the maths is
// in mixers/, ffns/ and blocks/ only. Field names are config.json's. Immutable after
// ParseModelSpec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/ffn_specs.h"
#include "model/mixer_specs.h"
#include "weights/checkpoint_facts.h"
#include "weights/source.h"
#include "weights/tensor_need.h"

namespace tq {

// How a block's parts meet the residual stream (docs/models.md "residuals").
enum class Residual : uint8_t {
  kPre,       // x += mixer(norm1 x); x += ffn(norm2 x)
  kSandwich,  // x += norm2(mixer(norm1 x)); x += norm4(ffn(norm3 x))
  kSingle,    // x += part(norm x): one part per block
  kHyper,     // several streams, mixed before and after each part (qwen4_exp)
  kAttend,    // each part reads a softmax mix of earlier residuals (kimi_k3)
};

// Embeddings of hashed n-grams that are added to the streams before a block (qwen4_exp).
struct NgramSpec {
  int64_t embed_dim = 0;
  int ngram_size = 3;
  int heads_per_ngram = 8;
  int conv_kernel = 4;
  int num_shards = 1;          // the table's parts, equally long
  int64_t first_prime_at = 0;  // the hash heads of all layers take the primes from here on, in turn
  int64_t rows_multiple = 1;   // the table is padded to it
  int ordinal = 0;             // which of the layers with an n-gram embedding this is
  int32_t padding_id = 0;
};

struct BlockSpec {
  std::string prefix;  // "model.layers.3."
  Residual residual = Residual::kPre;
  NormSpec norm;
  NormSpec post_norm;  // kSandwich: of the norms after a part
  MixerSpec mixer;
  std::string mixer_name = "self_attn.";
  FfnSpec ffn;
  std::string ffn_name = "mlp.";
  // kSandwich, gemma4 and diffusion_gemma: a MoE beside the dense part, with norms of its own.
  FfnSpec parallel_ffn;
  // x *= this tensor's value at the end; empty: none. A causal pass uses causal_scalar when it is
  // named (diffusion_gemma's encoder).
  std::string layer_scalar;
  std::string causal_scalar;
  int64_t per_layer_input = 0;     // > 0: width of gemma4's per-layer embedding
  std::optional<NgramSpec> ngram;  // kHyper
  bool snapshot = false;           // kAttend: the residual is kept for later blocks and starts anew
};

// What follows the last block: a norm of the residual (kHyper: a mix of the streams instead;
// kAttend: a mix of the residuals before it), then the head matrix.
struct HeadSpec {
  NormSpec norm;
  float logit_scale = 1.0f;
  float final_logit_softcapping = 0.0f;  // 0: none
};

struct ModelSpec {
  std::string model_type;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t max_position_embeddings = 0;
  int num_streams = 1;  // kHyper: residual streams of hidden_size each
  NormSpec hyper_norm;  // kHyper: of each stream
  int64_t hyper_rank = 0;
  float embed_scale = 1.0f;
  std::optional<NormSpec> embed_norm;  // over each embedding, without weight
  bool tie_word_embeddings = false;
  HeadSpec head;
  std::vector<RopeSpec> ropes;
  std::vector<BlockSpec> blocks;
  // gemma4: an embedding of num_layers * per_layer_input values per token, 0: none.
  int64_t per_layer_input = 0;
  int64_t per_layer_vocab = 0;
  // diffusion_gemma: the denoising pass (StepPlan::causal is false) mixes its last prediction in.
  std::optional<DenseFfnSpec> self_conditioning;
};

// The parts of a block that an arch file filled with that kind.
inline AttentionSpec& AttentionOf(BlockSpec& block) { return std::get<AttentionSpec>(block.mixer); }
inline DenseFfnSpec& DenseOf(BlockSpec& block) { return std::get<DenseFfnSpec>(block.ffn); }

// config: the content of config.json. facts: what only the tensors tell (weights/source.h).
// Errors: kUnsupported (model_type with the nearest known ones, activation, rope type, a key that
// nobody read), kCorrupt (missing, ill-typed or contradicting values).
Result<ModelSpec> ParseModelSpec(const Json& config, const CheckpointFacts& facts);

// Every tensor that the model needs, in the order of the forward pass. source answers which of two
// published forms a checkpoint has; null: the first.
std::vector<TensorNeed> NeededTensors(const ModelSpec& spec, const WeightSource* source = nullptr);

// Names in arch_list.inc, sorted.
std::vector<std::string> KnownModelTypes();

}  // namespace tq

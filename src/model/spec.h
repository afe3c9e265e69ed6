// ModelSpec: a model as data. An arch file turns config.json into this list of blocks; the maths is
// in mixers/ and ffns/ only. Field names are config.json's. Immutable after ParseModelSpec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/json.h"
#include "base/status.h"
#include "weights/tensor_need.h"

namespace tq {

struct NormSpec {
  float eps = 1e-6f;
  bool plus_one = false;  // the stored weight is w - 1
};

// Rotary frequencies, ready to use (model/rope.h makes them from config.json).
struct RopeSpec {
  std::vector<float> inv_freq;    // [rotary_dim / 2]
  float attention_factor = 1.0f;  // multiplies cos and sin
  int rotary_dim() const { return static_cast<int>(inv_freq.size()) * 2; }
};

struct AttentionSpec {
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  bool q_bias = false;
  bool k_bias = false;
  bool v_bias = false;
  bool o_bias = false;
  std::optional<NormSpec> qk_norm;  // over head_dim, before rope
  int rope = 0;                     // index into ModelSpec::ropes
  float scale = 1.0f;
  int sliding_window = 0;  // 0: full attention
};

struct DenseFfnSpec {
  int64_t intermediate_size = 0;
  Activation activation = Activation::kSilu;
  bool bias = false;
};

enum class Residual : uint8_t {
  kPre,       // x += mixer(norm1 x); x += ffn(norm2 x)
  kSandwich,  // x += norm2(mixer(norm1 x)); x += norm4(ffn(norm3 x))
};

struct BlockSpec {
  std::string prefix;  // "model.layers.3."
  Residual residual = Residual::kPre;
  NormSpec norm;
  AttentionSpec mixer;
  DenseFfnSpec ffn;
};

struct ModelSpec {
  std::string model_type;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t max_position_embeddings = 0;
  float embed_scale = 1.0f;
  float final_logit_softcapping = 0.0f;  // 0: none
  bool tie_word_embeddings = false;
  NormSpec final_norm;
  std::vector<RopeSpec> ropes;
  std::vector<BlockSpec> blocks;
};

// config: the content of config.json. has_lm_head settles tying when the config is silent.
// Errors: kUnsupported (model_type with the nearest known ones, activation, rope type, a key that
// nobody read), kCorrupt (missing, ill-typed or contradicting values).
Result<ModelSpec> ParseModelSpec(const Json& config, bool has_lm_head);

// Every tensor that the model needs, in file order. The loader demands exactly these.
std::vector<TensorNeed> NeededTensors(const ModelSpec& spec);

// Names in arch_list.inc, sorted.
std::vector<std::string> KnownModelTypes();

}  // namespace tq

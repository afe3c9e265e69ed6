// What this project knows about one GGUF architecture: how its tensors are called, shaped and
// stored differently from Hugging Face's, and how its metadata becomes config.json. One line per
// architecture in gguf_arch_list.inc, one file per family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/gguf_keys.h"

namespace tq {

// Named sizes of tensor shapes.
enum class GgufDim : uint8_t { kNone, kHidden, kVocab, kFfn, kQuery, kKeyValue, kHead };

// How the stored values differ from Hugging Face's.
enum class GgufChange : uint8_t {
  kNone,
  kHeadRows,  // rows of a head are stored as [head_dim / 2, 2] instead of [2, head_dim / 2]
  kPlusOne,   // stored as 1 + w; the translation is f32
};

struct GgufTensorRule {
  std::string_view gguf;          // below "blk.N." for a tensor of a layer
  std::string_view hugging_face;  // below "model.layers.N." for a tensor of a layer
  GgufDim rows = GgufDim::kHidden;
  GgufDim cols = GgufDim::kNone;  // kNone: a vector of `rows` values
  GgufChange change = GgufChange::kNone;
  // Tensors that come together or not at all; the config flag of this name tells. Empty: required.
  std::string_view group = "";
};
using GgufTensorRules = std::vector<GgufTensorRule>;

// One model, as far as its translation needs it.
struct GgufModel {
  int64_t num_layers = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab = 0;
  // Values of rope_freqs.weight: the inverse frequencies are divided by them.
  std::vector<float> rope_factors;
  Json config = Json::object();  // config.json
};

struct GgufArch {
  GgufTensorRules model_rules;
  GgufTensorRules layer_rules;
  // Adds what is special to `model`, whose common part is read. Failures go to keys.status().
  void (*read_config)(GgufKeys& keys, GgufModel& model);
};

// Null for an unknown architecture.
std::optional<GgufArch> FindGgufArch(std::string_view name);
std::string KnownGgufArchs();  // "gemma3, llama, ..."

// Building blocks of the family files.
GgufTensorRules ModelRules(GgufChange norm);
// q, k, v, o projections; `rows` is the change of q and k.
GgufTensorRules AttentionRules(GgufChange rows);
GgufTensorRules GatedMlpRules();
// q_norm and k_norm over each head.
GgufTensorRules HeadNormRules(GgufChange norm);
// input_layernorm and post_attention_layernorm.
GgufTensorRules PreNormRules();
GgufTensorRules JoinRules(std::initializer_list<GgufTensorRules> parts);

// Sizes, epsilon and rope base, in `model` and its config. Requires: model.vocab.
void ReadCommonConfig(GgufKeys& keys, GgufModel& model);
// rope_scaling from A.rope.scaling.* or the factors of rope_freqs.weight.
void ReadRopeScaling(GgufKeys& keys, GgufModel& model);

}  // namespace tq

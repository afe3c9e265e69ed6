// "qwen2" and "qwen3": dense Qwen models. Rows are as in Hugging Face.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/gguf_arch.h"

namespace tq {
namespace {

using Dim = GgufDim;
constexpr GgufChange kNone = GgufChange::kNone;

void ReadQwen2Config(GgufKeys& keys, GgufModel& model) {
  model.config["model_type"] = "qwen2";
  model.config["architectures"] = Json::array({"Qwen2ForCausalLM"});
  model.config["hidden_act"] = "silu";
  model.config["use_sliding_window"] = false;
  ReadRopeScaling(keys, model);
}

void ReadQwen3Config(GgufKeys& keys, GgufModel& model) {
  model.config["model_type"] = "qwen3";
  model.config["architectures"] = Json::array({"Qwen3ForCausalLM"});
  model.config["hidden_act"] = "silu";
  model.config["use_sliding_window"] = false;
  ReadRopeScaling(keys, model);
}

}  // namespace

GgufArch Qwen2GgufArch() {
  const GgufTensorRules biases = {
      {"attn_q.bias", "self_attn.q_proj.bias", Dim::kQuery},
      {"attn_k.bias", "self_attn.k_proj.bias", Dim::kKeyValue},
      {"attn_v.bias", "self_attn.v_proj.bias", Dim::kKeyValue},
  };
  return {ModelRules(kNone),
          JoinRules({PreNormRules(), AttentionRules(kNone), biases, GatedMlpRules()}),
          ReadQwen2Config};
}

GgufArch Qwen3GgufArch() {
  const GgufTensorRules biases = {
      {"attn_q.bias", "self_attn.q_proj.bias", Dim::kQuery, Dim::kNone, kNone, "attention_bias"},
      {"attn_k.bias", "self_attn.k_proj.bias", Dim::kKeyValue, Dim::kNone, kNone, "attention_bias"},
      {"attn_v.bias", "self_attn.v_proj.bias", Dim::kKeyValue, Dim::kNone, kNone, "attention_bias"},
      {"attn_output.bias", "self_attn.o_proj.bias", Dim::kHidden, Dim::kNone, kNone,
       "attention_bias"},
  };
  return {ModelRules(kNone),
          JoinRules({PreNormRules(), AttentionRules(kNone), HeadNormRules(kNone), biases,
                     GatedMlpRules()}),
          ReadQwen3Config};
}

}  // namespace tq

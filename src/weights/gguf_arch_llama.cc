// "llama": Llama 2 and 3, Mistral, SmolLM and their kin. Query and key rows are permuted.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/gguf_arch.h"

namespace tq {
namespace {

using Dim = GgufDim;

void ReadLlamaConfig(GgufKeys& keys, GgufModel& model) {
  Json& config = model.config;
  config["model_type"] = "llama";
  config["architectures"] = Json::array({"LlamaForCausalLM"});
  config["hidden_act"] = "silu";
  const int64_t window = keys.Int(keys.Arch("attention.sliding_window"), 0, 0, int64_t{1} << 40);
  if (window > 0) {  // on every layer: what Hugging Face calls mistral
    config["model_type"] = "mistral";
    config["architectures"] = Json::array({"MistralForCausalLM"});
    config["sliding_window"] = window;
  }
  ReadRopeScaling(keys, model);
}

}  // namespace

GgufArch LlamaGgufArch() {
  constexpr GgufChange kRows = GgufChange::kHeadRows;
  constexpr GgufChange kNone = GgufChange::kNone;
  const GgufTensorRules biases = {
      {"attn_q.bias", "self_attn.q_proj.bias", Dim::kQuery, Dim::kNone, kRows, "attention_bias"},
      {"attn_k.bias", "self_attn.k_proj.bias", Dim::kKeyValue, Dim::kNone, kRows, "attention_bias"},
      {"attn_v.bias", "self_attn.v_proj.bias", Dim::kKeyValue, Dim::kNone, kNone, "attention_bias"},
      {"attn_output.bias", "self_attn.o_proj.bias", Dim::kHidden, Dim::kNone, kNone,
       "attention_bias"},
      {"ffn_gate.bias", "mlp.gate_proj.bias", Dim::kFfn, Dim::kNone, kNone, "mlp_bias"},
      {"ffn_up.bias", "mlp.up_proj.bias", Dim::kFfn, Dim::kNone, kNone, "mlp_bias"},
      {"ffn_down.bias", "mlp.down_proj.bias", Dim::kHidden, Dim::kNone, kNone, "mlp_bias"},
  };
  return {ModelRules(kNone),
          JoinRules({PreNormRules(), AttentionRules(kRows), GatedMlpRules(), biases}),
          ReadLlamaConfig};
}

}  // namespace tq

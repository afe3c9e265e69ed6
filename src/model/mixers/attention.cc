#include "model/mixers/attention.h"

namespace tq {

void AppendAttentionTensors(const AttentionSpec& spec, const std::string& prefix,
                            int64_t hidden_size, std::vector<TensorNeed>& out) {
  const int64_t q = int64_t{spec.num_attention_heads} * spec.head_dim;
  const int64_t kv = int64_t{spec.num_key_value_heads} * spec.head_dim;
  AppendLinearTensors(prefix + "q_proj", q, hidden_size, spec.q_bias, out);
  AppendLinearTensors(prefix + "k_proj", kv, hidden_size, spec.k_bias, out);
  AppendLinearTensors(prefix + "v_proj", kv, hidden_size, spec.v_bias, out);
  AppendLinearTensors(prefix + "o_proj", hidden_size, q, spec.o_bias, out);
  if (spec.qk_norm) {
    out.push_back({prefix + "q_norm.weight", {spec.head_dim}, TensorRole::kNorm});
    out.push_back({prefix + "k_norm.weight", {spec.head_dim}, TensorRole::kNorm});
  }
}

Result<std::unique_ptr<Mixer>> Attention::Load(const AttentionSpec& spec, const std::string& prefix,
                                               int64_t hidden_size, WeightLoader& loader) {
  std::unique_ptr<Attention> out(new Attention(spec));
  const int64_t q = int64_t{spec.num_attention_heads} * spec.head_dim;
  const int64_t kv = int64_t{spec.num_key_value_heads} * spec.head_dim;
  TQ_ASSIGN_OR_RETURN(out->q_proj_,
                      loader.LoadLinear(prefix + "q_proj", q, hidden_size, spec.q_bias));
  TQ_ASSIGN_OR_RETURN(out->k_proj_,
                      loader.LoadLinear(prefix + "k_proj", kv, hidden_size, spec.k_bias));
  TQ_ASSIGN_OR_RETURN(out->v_proj_,
                      loader.LoadLinear(prefix + "v_proj", kv, hidden_size, spec.v_bias));
  TQ_ASSIGN_OR_RETURN(out->o_proj_,
                      loader.LoadLinear(prefix + "o_proj", hidden_size, q, spec.o_bias));
  if (spec.qk_norm) {
    TQ_ASSIGN_OR_RETURN(out->q_norm_, loader.Vector(prefix + "q_norm.weight", spec.head_dim));
    TQ_ASSIGN_OR_RETURN(out->k_norm_, loader.Vector(prefix + "k_norm.weight", spec.head_dim));
  }
  return std::unique_ptr<Mixer>(std::move(out));
}

KvLayout Attention::CacheNeeds(KvType type) const {
  return {type, spec_.num_key_value_heads, spec_.head_dim};
}

void Attention::NormHeads(StepContext& step, const std::vector<float>& w, float* x,
                          int num_heads) const {
  step.backend.RmsNorm({.x = x,
                        .w = w.data(),
                        .plus_one = spec_.qk_norm->plus_one,
                        .eps = spec_.qk_norm->eps,
                        .out = x,
                        .num_rows = step.plan.num_tokens() * num_heads,
                        .n = spec_.head_dim});
}

void Attention::RotateHeads(StepContext& step, float* x, int num_heads) const {
  const RopeTable& table = step.ropes[static_cast<size_t>(spec_.rope)];
  step.backend.Rope({.x = x,
                     .num_tokens = step.plan.num_tokens(),
                     .num_heads = num_heads,
                     .head_dim = spec_.head_dim,
                     .rotary_dim = table.rotary_dim,
                     .cos = table.cos,
                     .sin = table.sin});
}

void Attention::Forward(StepContext& step, const float* x, float* y, LayerCache& cache) const {
  const ScratchScope scope(step.scratch);
  const int64_t num_tokens = step.plan.num_tokens();
  const int heads = spec_.num_attention_heads;
  const int kv_heads = spec_.num_key_value_heads;
  float* q = step.scratch.Alloc<float>(static_cast<size_t>(num_tokens * heads * spec_.head_dim));
  float* k = step.scratch.Alloc<float>(static_cast<size_t>(num_tokens * kv_heads * spec_.head_dim));
  float* v = step.scratch.Alloc<float>(static_cast<size_t>(num_tokens * kv_heads * spec_.head_dim));
  if (step.input_observer != nullptr) {
    step.input_observer->OnInput({q_proj_.name, k_proj_.name, v_proj_.name}, x, num_tokens,
                                 q_proj_.weight->cols());
  }
  const MatMulArgs qkv[] = {q_proj_.Args(x, q, num_tokens), k_proj_.Args(x, k, num_tokens),
                            v_proj_.Args(x, v, num_tokens)};
  step.backend.MatMul(qkv, step.scratch);
  if (spec_.qk_norm) {
    NormHeads(step, q_norm_, q, heads);
    NormHeads(step, k_norm_, k, kv_heads);
  }
  RotateHeads(step, q, heads);
  RotateHeads(step, k, kv_heads);
  step.backend.KvAppend({&step.plan, cache.layout, cache.pages.data(), k, v});

  float* mixed =
      step.scratch.Alloc<float>(static_cast<size_t>(num_tokens * heads * spec_.head_dim));
  step.backend.Attention({.plan = &step.plan,
                          .layout = cache.layout,
                          .pages = cache.pages.data(),
                          .q = q,
                          .out = mixed,
                          .num_heads = heads,
                          .scale = spec_.scale,
                          .window = spec_.sliding_window},
                         step.scratch);
  if (step.input_observer != nullptr) {
    step.input_observer->OnInput({o_proj_.name}, mixed, num_tokens, o_proj_.weight->cols());
  }
  const MatMulArgs out[] = {o_proj_.Args(mixed, y, num_tokens)};
  step.backend.MatMul(out, step.scratch);
}

void Attention::VisitWeights(WeightVisitor visit, void* context) const {
  for (const Linear* linear : {&q_proj_, &k_proj_, &v_proj_, &o_proj_}) {
    visit(context, linear->name, *linear->weight);
  }
}

}  // namespace tq

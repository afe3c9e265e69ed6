#include "model/mixers/attention.h"

#include <cmath>

#include "base/math.h"
#include "model/rope.h"

namespace tq {

Result<std::unique_ptr<Mixer>> Attention::Load(const AttentionSpec& spec, const std::string& prefix,
                                               int64_t hidden_size, TensorLoader& loader) {
  std::unique_ptr<Attention> out(new Attention(spec));
  const int64_t d = spec.head_dim;
  const int64_t q = spec.num_attention_heads * d;
  const int64_t kv = spec.num_key_value_heads * d;
  const int64_t q_rows = spec.gate == OutputGate::kSigmoidInQ ? 2 * q : q;
  TQ_ASSIGN_OR_RETURN(out->q_proj_,
                      loader.LoadLinear(prefix + "q_proj", q_rows, hidden_size, spec.q_bias));
  if (out->owns_kv()) {
    TQ_ASSIGN_OR_RETURN(out->k_proj_,
                        loader.LoadLinear(prefix + "k_proj", kv, hidden_size, spec.k_bias));
    if (!spec.v_from_k) {
      TQ_ASSIGN_OR_RETURN(out->v_proj_,
                          loader.LoadLinear(prefix + "v_proj", kv, hidden_size, spec.v_bias));
    }
  }
  TQ_ASSIGN_OR_RETURN(out->o_proj_,
                      loader.LoadLinear(prefix + "o_proj", hidden_size, q, spec.o_bias));
  if (spec.qk_norm) {
    TQ_ASSIGN_OR_RETURN(out->q_norm_,
                        Norm::Load(*spec.qk_norm, prefix + "q_norm.weight", d, loader));
    if (out->owns_kv()) {
      TQ_ASSIGN_OR_RETURN(out->k_norm_,
                          Norm::Load(*spec.qk_norm, prefix + "k_norm.weight", d, loader));
    }
  }
  if (out->gate_rows() > 0) {
    TQ_ASSIGN_OR_RETURN(out->gate_proj_, loader.LoadLinear(prefix + spec.gate_name,
                                                           out->gate_rows(), hidden_size, false));
  }
  if (!spec.sinks.empty()) {
    TQ_ASSIGN_OR_RETURN(out->sinks_, loader.Vector(prefix + spec.sinks, spec.num_attention_heads,
                                                   TensorRole::kSmall));
  }
  if (spec.indexer) {
    TQ_ASSIGN_OR_RETURN(out->index_, BlockIndex::Load(*spec.indexer, spec.rope, prefix + "indexer.",
                                                      hidden_size, loader));
  }
  return std::unique_ptr<Mixer>(std::move(out));
}

// Rows of a gate with a matrix of its own.
int64_t Attention::gate_rows() const {
  switch (spec_.gate) {
    case OutputGate::kNone:
    case OutputGate::kSigmoidInQ:
      return 0;
    case OutputGate::kSoftplusPerHead:
      return spec_.num_attention_heads;
    case OutputGate::kSigmoid:
    case OutputGate::kSoftplus:
      break;
  }
  return int64_t{spec_.num_attention_heads} * spec_.head_dim;
}

CacheNeeds Attention::Needs(const KvSettings& settings) const {
  CacheNeeds needs;
  if (!owns_kv()) return needs;
  needs.paged.push_back({.settings = settings,
                         .num_kv_heads = spec_.num_key_value_heads,
                         .head_dim = spec_.head_dim,
                         .v_head_dim = spec_.head_dim});
  if (index_) index_->AddNeeds(settings, needs);
  return needs;
}

// q *= 1 + beta ln(1 + floor(position / original)).
void Attention::ScaleByPosition(StepContext& step, float* q) const {
  const int64_t rows = step.num_tokens();
  float* factors = step.Floats(rows);
  for (int64_t t = 0; t < rows; ++t) {
    const int64_t periods = step.plan.positions[static_cast<size_t>(t)] / spec_.position_original;
    const double log = LogF64(1.0 + static_cast<double>(periods));
    factors[t] = static_cast<float>(1.0 + static_cast<double>(spec_.position_beta) * log);
  }
  const int64_t n = int64_t{spec_.num_attention_heads} * spec_.head_dim;
  step.backend.ScaleRows({q, factors, q, rows, n});
}

void Attention::ProjectInputs(StepContext& step, const float* x, float* q, float* gate, float* k,
                              float* v) const {
  const int64_t rows = step.num_tokens();
  const int64_t heads = spec_.num_attention_heads;
  const int64_t d = spec_.head_dim;
  if (spec_.gate != OutputGate::kSigmoidInQ) {
    Project(step, x, rows, {{&q_proj_, q}, {&k_proj_, k}, {&v_proj_, v}, {&gate_proj_, gate}});
    return;
  }
  const ScratchScope scope(step.scratch);
  float* both = step.Floats(rows * heads * 2 * d);  // [T, H, query | gate]
  Project(step, x, rows, {{&q_proj_, both}, {&k_proj_, k}, {&v_proj_, v}});
  step.backend.CopyRows({both, 2 * d, q, d, rows * heads, d});
  step.backend.CopyRows({both + d, 2 * d, gate, d, rows * heads, d});
}

void Attention::PrepareQuery(StepContext& step, float* q) const {
  const int64_t rows = step.num_tokens();
  const int heads = spec_.num_attention_heads;
  const int64_t d = spec_.head_dim;
  if (spec_.qk_norm) q_norm_.Apply(step, q, q, rows * heads, d);
  if (spec_.q_multiplier != 1.0f) {
    step.backend.Map({.x = q,
                      .x_stride = d,
                      .out = q,
                      .num_rows = rows * heads,
                      .n = d,
                      .scale = spec_.q_multiplier});
  }
  ApplyRope(step, spec_.rope, {q, heads, spec_.head_dim});
  if (spec_.position_beta != 0.0f) ScaleByPosition(step, q);
}

void Attention::AppendKv(StepContext& step, float* k, float* v, LayerCache& cache) const {
  const int64_t rows = step.num_tokens();
  const int heads = spec_.num_key_value_heads;
  const int64_t d = spec_.head_dim;
  if (spec_.v_from_k) step.backend.CopyRows({k, d, v, d, rows * heads, d});
  if (spec_.qk_norm) k_norm_.Apply(step, k, k, rows * heads, d);
  if (spec_.v_norm) Norm{*spec_.v_norm, {}}.Apply(step, v, v, rows * heads, d);
  ApplyRope(step, spec_.rope, {k, heads, spec_.head_dim});
  const LayerCache::Paged& paged = cache.paged[0];
  step.backend.KvAppend({&step.plan, paged.layout, paged.pages.data(), k, v, paged.exact_pages()});
}

void Attention::ApplyGate(StepContext& step, float* gate, float* mixed) const {
  const int64_t rows = step.num_tokens();
  const int64_t n = rows * spec_.num_attention_heads * spec_.head_dim;
  switch (spec_.gate) {
    case OutputGate::kNone:
      return;
    case OutputGate::kSigmoidInQ:
    case OutputGate::kSigmoid:
      step.backend.Glu({Activation::kSigmoid, gate, mixed, mixed, n});
      return;
    case OutputGate::kSoftplus:
      step.backend.Glu({Activation::kSoftplus, gate, mixed, mixed, n});
      return;
    case OutputGate::kSoftplusPerHead:
      break;
  }
  const int64_t heads = spec_.num_attention_heads;
  step.backend.Map({.x = gate,
                    .x_stride = heads,
                    .out = gate,
                    .num_rows = rows,
                    .n = heads,
                    .fn = MapFn::kSoftplus});
  step.backend.ScaleRows({mixed, gate, mixed, rows * heads, spec_.head_dim});
}

void Attention::Forward(StepContext& step, const float* x, float* y, KvCache& cache,
                        size_t layer) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int heads = spec_.num_attention_heads;
  const int64_t n = rows * heads * spec_.head_dim;
  float* q = step.Floats(n);
  float* mixed = step.Floats(n);
  float* gate = spec_.gate == OutputGate::kNone ? nullptr : step.Floats(n);
  LayerCache& own = cache.layer(layer);
  const int64_t kv_floats = owns_kv() ? rows * spec_.num_key_value_heads * spec_.head_dim : 0;
  float* k = step.Floats(kv_floats);
  float* v = step.Floats(kv_floats);
  ProjectInputs(step, x, q, gate, k, v);
  PrepareQuery(step, q);
  if (owns_kv()) AppendKv(step, k, v, own);
  const LayerCache::Paged& kv =
      (owns_kv() ? own : cache.layer(static_cast<size_t>(spec_.kv_layer))).paged[0];
  BlockIndex::Selection selection;
  if (index_) selection = index_->Select(step, x, own);
  step.backend.Attention({.plan = &step.plan,
                          .layout = kv.layout,
                          .pages = kv.pages.data(),
                          .q = q,
                          .out = mixed,
                          .num_heads = heads,
                          .scale = spec_.scale,
                          .window = spec_.sliding_window,
                          .causal = step.plan.causal,
                          .sinks = sinks_.empty() ? nullptr : sinks_.data(),
                          .selected = selection.bits,
                          .selected_stride = selection.stride,
                          .exact = kv.exact_pages()},
                         step.scratch);
  ApplyGate(step, gate, mixed);
  Project(step, mixed, rows, {{&o_proj_, y}});
}

void Attention::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context, {&q_proj_, &k_proj_, &v_proj_, &gate_proj_, &o_proj_});
}

}  // namespace tq

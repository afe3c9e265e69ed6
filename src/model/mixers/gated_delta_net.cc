#include "model/mixers/gated_delta_net.h"

#include <cmath>

#include "base/math.h"
#include "model/mixers/l2_norm.h"

namespace tq {

Result<std::unique_ptr<Mixer>> GatedDeltaNet::Load(const GatedDeltaNetSpec& spec,
                                                   const std::string& prefix, int64_t hidden_size,
                                                   TensorLoader& loader) {
  std::unique_ptr<GatedDeltaNet> out(new GatedDeltaNet(spec));
  const int64_t heads = spec.num_value_heads;
  if (spec.fused_projections) {
    TQ_ASSIGN_OR_RETURN(out->in_proj_qkv_, loader.LoadLinear(prefix + "in_proj_qkvz",
                                                             out->channels() + out->value_width(),
                                                             hidden_size, false));
    TQ_ASSIGN_OR_RETURN(out->in_proj_b_,
                        loader.LoadLinear(prefix + "in_proj_ba", 2 * heads, hidden_size, false));
  } else {
    TQ_ASSIGN_OR_RETURN(out->in_proj_qkv_, loader.LoadLinear(prefix + "in_proj_qkv",
                                                             out->channels(), hidden_size, false));
    TQ_ASSIGN_OR_RETURN(out->in_proj_z_, loader.LoadLinear(prefix + "in_proj_z", out->value_width(),
                                                           hidden_size, false));
    TQ_ASSIGN_OR_RETURN(out->in_proj_b_,
                        loader.LoadLinear(prefix + "in_proj_b", heads, hidden_size, false));
    TQ_ASSIGN_OR_RETURN(out->in_proj_a_,
                        loader.LoadLinear(prefix + "in_proj_a", heads, hidden_size, false));
  }
  TQ_ASSIGN_OR_RETURN(
      out->conv_, loader.ConvKernel(prefix + "conv1d.weight", out->channels(), spec.conv_kernel));
  TQ_ASSIGN_OR_RETURN(out->dt_bias_, loader.Vector(prefix + "dt_bias", heads, TensorRole::kSmall));
  TQ_ASSIGN_OR_RETURN(out->decay_, loader.Vector(prefix + "A_log", heads, TensorRole::kSmall));
  for (float& a : out->decay_) a = -Exp(a);
  TQ_ASSIGN_OR_RETURN(out->norm_, loader.Vector(prefix + "norm.weight", spec.value_head_dim));
  TQ_ASSIGN_OR_RETURN(out->out_proj_, loader.LoadLinear(prefix + "out_proj", hidden_size,
                                                        out->value_width(), false));
  const double root = 1.0 / std::sqrt(static_cast<double>(spec.key_head_dim));
  out->q_scale_ = L2NormScale(spec.key_head_dim, root);
  out->k_scale_ = L2NormScale(spec.key_head_dim, 1.0);
  return std::unique_ptr<Mixer>(std::move(out));
}

CacheNeeds GatedDeltaNet::Needs(const KvSettings&) const {
  CacheNeeds needs;
  needs.state_floats = conv_state() + value_width() * spec_.key_head_dim;
  return needs;
}

GatedDeltaNet::Projected GatedDeltaNet::ProjectInputs(StepContext& step, const float* x) const {
  const int64_t rows = step.num_tokens();
  const int64_t heads = spec_.num_value_heads;
  const Projected out = {step.Floats(rows * channels()), step.Floats(rows * value_width()),
                         step.Floats(rows * heads), step.Floats(rows * heads)};
  if (!spec_.fused_projections) {
    Project(step, x, rows,
            {{&in_proj_qkv_, out.qkv},
             {&in_proj_z_, out.z},
             {&in_proj_b_, out.b},
             {&in_proj_a_, out.a}});
    return out;
  }
  const ScratchScope scope(step.scratch);
  float* qkvz = step.Floats(rows * (channels() + value_width()));
  float* ba = step.Floats(rows * 2 * heads);
  Project(step, x, rows, {{&in_proj_qkv_, qkvz}, {&in_proj_b_, ba}});
  SplitFused(step, qkvz, ba, out);
  return out;
}

// Per key head: q, k, then v and z of its value heads; b, then a of its value heads.
void GatedDeltaNet::SplitFused(StepContext& step, const float* qkvz, const float* ba,
                               const Projected& out) const {
  const int64_t rows = step.num_tokens();
  const int64_t dk = spec_.key_head_dim;
  const int64_t per_key = spec_.num_value_heads / spec_.num_key_heads;
  const int64_t dv = per_key * spec_.value_head_dim;
  const int64_t group = 2 * dk + 2 * dv;
  const auto copy = [&](const float* in, int64_t in_stride, float* to, int64_t to_stride,
                        int64_t n) {
    step.backend.CopyRows({in, in_stride, to, to_stride, rows, n});
  };
  const int64_t in_stride = spec_.num_key_heads * group;
  for (int64_t h = 0; h < spec_.num_key_heads; ++h) {
    const float* in = qkvz + h * group;
    copy(in, in_stride, out.qkv + h * dk, channels(), dk);
    copy(in + dk, in_stride, out.qkv + key_width() + h * dk, channels(), dk);
    copy(in + 2 * dk, in_stride, out.qkv + 2 * key_width() + h * dv, channels(), dv);
    copy(in + 2 * dk + dv, in_stride, out.z + h * dv, value_width(), dv);
    const float* gates = ba + h * 2 * per_key;
    copy(gates, 2 * spec_.num_value_heads, out.b + h * per_key, spec_.num_value_heads, per_key);
    copy(gates + per_key, 2 * spec_.num_value_heads, out.a + h * per_key, spec_.num_value_heads,
         per_key);
  }
}

void GatedDeltaNet::Forward(StepContext& step, const float* x, float* y, KvCache& cache,
                            size_t layer) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t heads = spec_.num_value_heads;
  const int64_t width = value_width();
  LayerCache& state = cache.layer(layer);
  const Projected in = ProjectInputs(step, x);
  float* mixed = step.Floats(rows * channels());
  step.backend.CausalConv({.plan = &step.plan,
                           .x = in.qkv,
                           .x_stride = channels(),
                           .w = conv_.data(),
                           .out = mixed,
                           .channels = channels(),
                           .kernel = spec_.conv_kernel,
                           .state = state.State(0)});
  float* q = step.Floats(rows * key_width());
  float* k = step.Floats(rows * key_width());
  float* v = step.Floats(rows * width);
  step.backend.CopyRows({mixed, channels(), q, key_width(), rows, key_width()});
  step.backend.CopyRows({mixed + key_width(), channels(), k, key_width(), rows, key_width()});
  step.backend.CopyRows({mixed + 2 * key_width(), channels(), v, width, rows, width});
  ApplyL2Norm(step, q_scale_, q, rows * spec_.num_key_heads);
  ApplyL2Norm(step, k_scale_, k, rows * spec_.num_key_heads);
  step.backend.Map({.x = in.b,
                    .x_stride = heads,
                    .out = in.b,
                    .num_rows = rows,
                    .n = heads,
                    .fn = MapFn::kSigmoid});
  step.backend.Map({.x = in.a,
                    .x_stride = heads,
                    .out = in.a,
                    .num_rows = rows,
                    .n = heads,
                    .fn = MapFn::kSoftplus,
                    .bias = dt_bias_.data(),
                    .post = decay_.data()});
  float* o = step.Floats(rows * width);
  step.backend.DeltaRule({.plan = &step.plan,
                          .q = q,
                          .k = k,
                          .v = v,
                          .log_decay = in.a,
                          .beta = in.b,
                          .out = o,
                          .num_k_heads = spec_.num_key_heads,
                          .num_v_heads = spec_.num_value_heads,
                          .k_dim = spec_.key_head_dim,
                          .v_dim = spec_.value_head_dim,
                          .state = state.State(conv_state())});
  step.backend.RmsNorm({.x = o,
                        .w = norm_.data(),
                        .eps = spec_.norm_eps,
                        .out = o,
                        .num_rows = rows * heads,
                        .n = spec_.value_head_dim});
  step.backend.Glu({spec_.gate, in.z, o, o, rows * width});
  Project(step, o, rows, {{&out_proj_, y}});
}

void GatedDeltaNet::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context, {&in_proj_qkv_, &in_proj_z_, &in_proj_b_, &in_proj_a_, &out_proj_});
}

}  // namespace tq

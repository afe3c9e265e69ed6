#include "model/mixers/kda.h"

#include <cmath>

#include "base/math.h"
#include "model/mixers/l2_norm.h"

namespace tq {

Result<std::unique_ptr<Mixer>> Kda::Load(const KdaSpec& spec, const std::string& prefix,
                                         int64_t hidden_size, TensorLoader& loader) {
  std::unique_ptr<Kda> out(new Kda(spec));
  const int64_t width = out->width();
  const char* names[] = {"q", "k", "v"};
  for (int i = 0; i < 3; ++i) {
    Branch& branch = out->branches_[i];
    const std::string path = prefix + names[i];
    TQ_ASSIGN_OR_RETURN(branch.proj, loader.LoadLinear(path + "_proj", width, hidden_size, false));
    TQ_ASSIGN_OR_RETURN(branch.conv,
                        loader.ConvKernel(path + "_conv1d.weight", width, spec.conv_kernel));
  }
  TQ_RETURN_IF_ERROR(out->LoadDecay(prefix, hidden_size, loader));
  TQ_ASSIGN_OR_RETURN(out->b_proj_,
                      loader.LoadLinear(prefix + "b_proj", spec.num_heads, hidden_size, false));
  if (spec.full_rank_gate) {
    TQ_ASSIGN_OR_RETURN(out->g_proj_,
                        loader.LoadLinear(prefix + "g_proj", width, hidden_size, false));
  } else {
    TQ_ASSIGN_OR_RETURN(out->g_a_proj_,
                        loader.LoadLinear(prefix + "g_a_proj", spec.head_dim, hidden_size, false));
    TQ_ASSIGN_OR_RETURN(out->g_b_proj_,
                        loader.LoadLinear(prefix + "g_b_proj", width, spec.head_dim, false));
  }
  TQ_ASSIGN_OR_RETURN(out->o_norm_, loader.Vector(prefix + "o_norm.weight", spec.head_dim));
  TQ_ASSIGN_OR_RETURN(out->o_proj_,
                      loader.LoadLinear(prefix + "o_proj", hidden_size, width, false));
  out->q_scale_ = L2NormScale(spec.head_dim, 1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  out->k_scale_ = L2NormScale(spec.head_dim, 1.0);
  return std::unique_ptr<Mixer>(std::move(out));
}

Status Kda::LoadDecay(const std::string& prefix, int64_t hidden_size, TensorLoader& loader) {
  TQ_ASSIGN_OR_RETURN(f_a_proj_,
                      loader.LoadLinear(prefix + "f_a_proj", spec_.head_dim, hidden_size, false));
  TQ_ASSIGN_OR_RETURN(f_b_proj_,
                      loader.LoadLinear(prefix + "f_b_proj", width(), spec_.head_dim, false));
  TQ_ASSIGN_OR_RETURN(const std::vector<float> a_log,
                      loader.FirstFloats(prefix + "A_log", spec_.num_heads));
  TQ_ASSIGN_OR_RETURN(dt_bias_, loader.FirstFloats(prefix + "dt_bias", width()));
  for (const float a : a_log) {
    const float rate = spec_.gate_lower_bound < 0 ? Exp(a) : -Exp(a);
    decay_.insert(decay_.end(), static_cast<size_t>(spec_.head_dim), rate);
  }
  return Status::Ok();
}

CacheNeeds Kda::Needs(const KvSettings&) const {
  CacheNeeds needs;
  needs.state_floats = 3 * conv_state() + width() * spec_.head_dim;
  return needs;
}

// Bounded: bound * sigmoid(exp(A_log) (a + dt_bias)); else -exp(A_log) softplus(a + dt_bias).
void Kda::LogDecay(StepContext& step, float* a) const {
  MapArgs args = {.x = a,
                  .x_stride = width(),
                  .out = a,
                  .num_rows = step.num_tokens(),
                  .n = width(),
                  .bias = dt_bias_.data()};
  if (spec_.gate_lower_bound < 0) {
    args.fn = MapFn::kSigmoid;
    args.pre = decay_.data();
    args.scale = spec_.gate_lower_bound;
  } else {
    args.fn = MapFn::kSoftplus;
    args.post = decay_.data();
  }
  step.backend.Map(args);
}

void Kda::ProjectLowRank(StepContext& step, const float* x, float* decay, float* gate) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  float* low = step.Floats(rows * spec_.head_dim);
  Project(step, x, rows, {{&f_a_proj_, low}});
  Project(step, low, rows, {{&f_b_proj_, decay}});
  if (spec_.full_rank_gate) {
    Project(step, x, rows, {{&g_proj_, gate}});
    return;
  }
  Project(step, x, rows, {{&g_a_proj_, low}});
  Project(step, low, rows, {{&g_b_proj_, gate}});
}

void Kda::Forward(StepContext& step, const float* x, float* y, KvCache& cache, size_t layer) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t n = rows * width();
  LayerCache& state = cache.layer(layer);
  float* raw[3];
  float* qkv[3];
  for (int i = 0; i < 3; ++i) {
    raw[i] = step.Floats(n);
    qkv[i] = step.Floats(n);
  }
  float* beta = step.Floats(rows * spec_.num_heads);
  Project(step, x, rows,
          {{&branches_[0].proj, raw[0]},
           {&branches_[1].proj, raw[1]},
           {&branches_[2].proj, raw[2]},
           {&b_proj_, beta}});
  for (int i = 0; i < 3; ++i) {
    step.backend.CausalConv({.plan = &step.plan,
                             .x = raw[i],
                             .x_stride = width(),
                             .w = branches_[i].conv.data(),
                             .out = qkv[i],
                             .channels = width(),
                             .kernel = spec_.conv_kernel,
                             .state = state.State(i * conv_state())});
  }
  ApplyL2Norm(step, q_scale_, qkv[0], rows * spec_.num_heads);
  ApplyL2Norm(step, k_scale_, qkv[1], rows * spec_.num_heads);
  float* decay = raw[0];  // the projections are used up
  float* gate = raw[1];
  float* o = raw[2];
  ProjectLowRank(step, x, decay, gate);
  LogDecay(step, decay);
  step.backend.Map({.x = beta,
                    .x_stride = spec_.num_heads,
                    .out = beta,
                    .num_rows = rows,
                    .n = spec_.num_heads,
                    .fn = MapFn::kSigmoid});
  step.backend.DeltaRule({.plan = &step.plan,
                          .q = qkv[0],
                          .k = qkv[1],
                          .v = qkv[2],
                          .log_decay = decay,
                          .beta = beta,
                          .out = o,
                          .num_k_heads = spec_.num_heads,
                          .num_v_heads = spec_.num_heads,
                          .k_dim = spec_.head_dim,
                          .v_dim = spec_.head_dim,
                          .decay_per_key = true,
                          .state = state.State(3 * conv_state())});
  step.backend.RmsNorm({.x = o,
                        .w = o_norm_.data(),
                        .eps = spec_.norm_eps,
                        .out = o,
                        .num_rows = rows * spec_.num_heads,
                        .n = spec_.head_dim});
  step.backend.Glu({Activation::kSigmoid, gate, o, o, n});
  Project(step, o, rows, {{&o_proj_, y}});
}

void Kda::VisitWeights(WeightVisitor visit, void* context) const {
  for (const Branch& branch : branches_) VisitLinears(visit, context, {&branch.proj});
  VisitLinears(visit, context,
               {&f_a_proj_, &f_b_proj_, &b_proj_, &g_proj_, &g_a_proj_, &g_b_proj_, &o_proj_});
}

}  // namespace tq

#include "model/mixers/mamba2.h"

#include "base/math.h"

namespace tq {

Result<std::unique_ptr<Mixer>> Mamba2::Load(const Mamba2Spec& spec, const std::string& prefix,
                                            int64_t hidden_size, TensorLoader& loader) {
  std::unique_ptr<Mamba2> out(new Mamba2(spec));
  const int64_t rows = out->width() + out->channels() + spec.num_heads;
  TQ_ASSIGN_OR_RETURN(out->in_proj_,
                      loader.LoadLinear(prefix + "in_proj", rows, hidden_size, spec.proj_bias));
  TQ_ASSIGN_OR_RETURN(
      out->conv_, loader.ConvKernel(prefix + "conv1d.weight", out->channels(), spec.conv_kernel));
  if (spec.conv_bias) {
    TQ_ASSIGN_OR_RETURN(out->conv_bias_,
                        loader.Vector(prefix + "conv1d.bias", out->channels(), TensorRole::kSmall));
  }
  const auto vector = [&](const char* name) {
    return loader.Vector(prefix + name, spec.num_heads, TensorRole::kSmall);
  };
  TQ_ASSIGN_OR_RETURN(out->dt_bias_, vector("dt_bias"));
  TQ_ASSIGN_OR_RETURN(out->a_, vector("A_log"));
  for (float& a : out->a_) a = Exp(a);
  TQ_ASSIGN_OR_RETURN(out->d_, vector("D"));
  TQ_ASSIGN_OR_RETURN(out->norm_, loader.Vector(prefix + "norm.weight", out->width()));
  TQ_ASSIGN_OR_RETURN(out->out_proj_, loader.LoadLinear(prefix + "out_proj", hidden_size,
                                                        out->width(), spec.proj_bias));
  return std::unique_ptr<Mixer>(std::move(out));
}

CacheNeeds Mamba2::Needs(const KvSettings&) const {
  CacheNeeds needs;
  needs.state_floats = conv_state() + width() * spec_.state_size;
  return needs;
}

void Mamba2::Forward(StepContext& step, const float* x, float* y, KvCache& cache,
                     size_t layer) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t stride = in_proj_.weight->rows();
  LayerCache& state = cache.layer(layer);
  float* in = step.Floats(rows * stride);  // [T, z | x B C | dt]
  Project(step, x, rows, {{&in_proj_, in}});
  float* mixed = step.Floats(rows * channels());
  step.backend.CausalConv({.plan = &step.plan,
                           .x = in + width(),
                           .x_stride = stride,
                           .w = conv_.data(),
                           .bias = conv_bias_.empty() ? nullptr : conv_bias_.data(),
                           .out = mixed,
                           .channels = channels(),
                           .kernel = spec_.conv_kernel,
                           .state = state.State(0)});
  float* xs = step.Floats(rows * width());
  float* b = step.Floats(rows * group_width());
  float* c = step.Floats(rows * group_width());
  float* z = step.Floats(rows * width());
  float* dt = step.Floats(rows * spec_.num_heads);
  step.backend.CopyRows({mixed, channels(), xs, width(), rows, width()});
  step.backend.CopyRows({mixed + width(), channels(), b, group_width(), rows, group_width()});
  step.backend.CopyRows(
      {mixed + width() + group_width(), channels(), c, group_width(), rows, group_width()});
  step.backend.CopyRows({in, stride, z, width(), rows, width()});
  MapArgs limits = {.x = in + width() + channels(),
                    .x_stride = stride,
                    .out = dt,
                    .num_rows = rows,
                    .n = spec_.num_heads,
                    .fn = MapFn::kSoftplus,
                    .bias = dt_bias_.data(),
                    .low = spec_.time_step_min};
  if (spec_.time_step_max > 0) limits.high = spec_.time_step_max;
  step.backend.Map(limits);
  float* o = step.Floats(rows * width());
  step.backend.MambaScan({.plan = &step.plan,
                          .x = xs,
                          .b = b,
                          .c = c,
                          .dt = dt,
                          .a = a_.data(),
                          .d = d_.data(),
                          .out = o,
                          .num_heads = spec_.num_heads,
                          .head_dim = spec_.head_dim,
                          .num_groups = spec_.num_groups,
                          .state_size = spec_.state_size,
                          .state = state.State(conv_state())});
  // The gate comes before the norm.
  step.backend.Glu({Activation::kSilu, z, o, o, rows * width()});
  step.backend.RmsNorm({.x = o,
                        .w = norm_.data(),
                        .eps = spec_.norm_eps,
                        .out = o,
                        .num_rows = rows * spec_.num_groups,
                        .n = width() / spec_.num_groups,
                        .w_rows = spec_.num_groups});
  Project(step, o, rows, {{&out_proj_, y}});
}

void Mamba2::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context, {&in_proj_, &out_proj_});
}

}  // namespace tq

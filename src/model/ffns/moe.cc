#include "model/ffns/moe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "model/ffns/dense.h"

namespace tq {

Result<std::unique_ptr<Ffn>> Moe::Load(const MoeSpec& spec, const std::string& prefix,
                                       int64_t hidden_size, TensorLoader& loader) {
  std::unique_ptr<Moe> out(new Moe(spec, hidden_size));
  TQ_RETURN_IF_ERROR(out->LoadRouter(prefix, loader));
  if (spec.latent_size > 0) {
    const bool bias = spec.expert.bias;
    TQ_ASSIGN_OR_RETURN(out->latent_down_, loader.LoadLinear(prefix + spec.latent_down,
                                                             spec.latent_size, hidden_size, bias));
    TQ_ASSIGN_OR_RETURN(out->latent_up_, loader.LoadLinear(prefix + spec.latent_up, hidden_size,
                                                           spec.latent_size, bias));
    if (spec.latent_norm) {
      TQ_ASSIGN_OR_RETURN(out->latent_norm_,
                          Norm::Load(*spec.latent_norm, prefix + "routed_expert_norm.weight",
                                     spec.latent_size, loader));
    }
  }
  TQ_RETURN_IF_ERROR(out->LoadExperts(prefix, loader));
  if (!spec.shared_name.empty()) {
    TQ_ASSIGN_OR_RETURN(out->shared_, DenseFfn::Load(spec.shared, prefix + spec.shared_name + ".",
                                                     hidden_size, loader));
  }
  if (spec.shared_gate) {
    TQ_ASSIGN_OR_RETURN(out->shared_gate_,
                        loader.LoadLinear(prefix + "shared_expert_gate", 1, hidden_size, false,
                                          TensorRole::kSmall));
  }
  return std::unique_ptr<Ffn>(std::move(out));
}

Status Moe::LoadRouter(const std::string& prefix, TensorLoader& loader) {
  const std::string path = prefix + spec_.router_name;
  const int64_t num_experts = spec_.router.num_experts;
  TQ_ASSIGN_OR_RETURN(router_, loader.LoadLinear(path, num_experts, hidden_, spec_.router_bias,
                                                 TensorRole::kSmall));
  if (spec_.selection_bias) {
    TQ_ASSIGN_OR_RETURN(selection_bias_, loader.Vector(path + ".e_score_correction_bias",
                                                       num_experts, TensorRole::kSmall));
  }
  if (spec_.scaled_router) {
    const std::string parent = prefix + "router.";
    TQ_ASSIGN_OR_RETURN(router_scale_,
                        loader.Vector(parent + "scale", hidden_, TensorRole::kSmall));
    // The reference divides the normed input by sqrt(hidden_size) as well.
    const auto root = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hidden_)));
    for (float& scale : router_scale_) scale *= root;
    TQ_ASSIGN_OR_RETURN(
        expert_scale_, loader.Vector(parent + "per_expert_scale", num_experts, TensorRole::kSmall));
  }
  return Status::Ok();
}

Status Moe::LoadExperts(const std::string& prefix, TensorLoader& loader) {
  const int64_t inner = spec_.expert.intermediate_size;
  const int64_t width = expert_width();
  const bool bias = spec_.expert.bias;
  for (int e = 0; e < spec_.router.num_experts; ++e) {
    const std::string path = prefix + "experts." + std::to_string(e) + ".";
    Expert expert;
    if (spec_.expert.gated) {
      TQ_ASSIGN_OR_RETURN(expert.gate_proj,
                          loader.LoadLinear(path + "gate_proj", inner, width, bias));
    }
    TQ_ASSIGN_OR_RETURN(expert.up_proj, loader.LoadLinear(path + "up_proj", inner, width, bias));
    TQ_ASSIGN_OR_RETURN(expert.down_proj,
                        loader.LoadLinear(path + "down_proj", width, inner, bias));
    experts_.push_back(std::move(expert));
  }
  return Status::Ok();
}

void Moe::Route(StepContext& step, const float* x, int32_t* experts, float* weights) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  float* logits = step.Floats(rows * spec_.router.num_experts);
  if (spec_.scaled_router) {
    float* scaled = step.Floats(rows * hidden_);
    step.backend.RmsNorm({.x = x,
                          .w = router_scale_.data(),
                          .eps = spec_.router_eps,
                          .out = scaled,
                          .num_rows = rows,
                          .n = hidden_});
    x = scaled;
  }
  Project(step, x, rows, {{&router_, logits}});
  step.backend.Route({.rule = spec_.router,
                      .logits = logits,
                      .selection_bias = selection_bias_.empty() ? nullptr : selection_bias_.data(),
                      .expert_scale = expert_scale_.empty() ? nullptr : expert_scale_.data(),
                      .experts = experts,
                      .weights = weights,
                      .num_tokens = rows});
}

Moe::Dispatch Moe::Sort(StepContext& step, const int32_t* experts) const {
  const int64_t choices = step.num_tokens() * spec_.router.top_k;
  const auto num_experts = static_cast<size_t>(spec_.router.num_experts);
  Dispatch out;
  out.num_rows = choices;
  out.begin = step.scratch.Alloc<int32_t>(num_experts + 1);
  out.token_of_row = step.scratch.Alloc<int32_t>(static_cast<size_t>(choices));
  out.row_of_choice = step.scratch.Alloc<int32_t>(static_cast<size_t>(choices));
  int32_t* next = step.scratch.Alloc<int32_t>(num_experts);
  std::fill_n(out.begin, num_experts + 1, 0);
  for (int64_t i = 0; i < choices; ++i) ++out.begin[experts[i] + 1];
  for (size_t e = 0; e < num_experts; ++e) {
    out.begin[e + 1] += out.begin[e];
    next[e] = out.begin[e];
  }
  for (int64_t i = 0; i < choices; ++i) {
    const int32_t row = next[experts[i]]++;
    out.row_of_choice[i] = row;
    out.token_of_row[row] = static_cast<int32_t>(i / spec_.router.top_k);
  }
  return out;
}

// The experts' first matrices share the layer's input, whichever tokens each of them gets.
void Moe::ShowInput(StepContext& step, const float* x) const {
  if (step.input_observer == nullptr) return;
  std::vector<std::string_view> names;
  for (const Expert& expert : experts_) {
    names.emplace_back(expert.up_proj.name);
    if (spec_.expert.gated) names.emplace_back(expert.gate_proj.name);
  }
  step.input_observer->OnInput(names, x, step.num_tokens(), expert_width());
}

// out [num_rows, expert_width]: each expert's answer to its tokens.
void Moe::RunExperts(StepContext& step, const float* x, const Dispatch& dispatch,
                     float* out) const {
  const ScratchScope scope(step.scratch);
  const int64_t width = expert_width();
  const int64_t inner = spec_.expert.intermediate_size;
  const bool single = step.num_tokens() == 1;  // every row is the same token: nothing to gather
  float* gathered = nullptr;
  if (!single) {
    gathered = step.Floats(dispatch.num_rows * width);
    step.backend.CopyRows(
        {x, width, gathered, width, dispatch.num_rows, width, dispatch.token_of_row});
  }
  float* up = step.Floats(dispatch.num_rows * inner);
  float* gate = spec_.expert.gated ? step.Floats(dispatch.num_rows * inner) : nullptr;
  MatMulArgs* args = step.scratch.Alloc<MatMulArgs>(experts_.size() * 2);
  size_t num_in = 0;
  for (size_t e = 0; e < experts_.size(); ++e) {
    const int64_t begin = dispatch.begin[e];
    const int64_t n = dispatch.begin[e + 1] - begin;
    if (n == 0) continue;
    const float* in = single ? x : gathered + begin * width;
    const Expert& expert = experts_[e];
    args[num_in++] = expert.up_proj.Args(in, up + begin * inner, n);
    if (gate != nullptr) args[num_in++] = expert.gate_proj.Args(in, gate + begin * inner, n);
  }
  step.backend.MatMul({args, num_in}, step.scratch);
  ActivateFfn(step, spec_.expert, gate, up, dispatch.num_rows * inner);
  size_t num_out = 0;
  for (size_t e = 0; e < experts_.size(); ++e) {
    const int64_t begin = dispatch.begin[e];
    const int64_t n = dispatch.begin[e + 1] - begin;
    const Linear& down = experts_[e].down_proj;
    const std::string_view names[] = {down.name};
    if (step.input_observer != nullptr) {
      step.input_observer->OnInput(names, up + begin * inner, n, inner);
    }
    if (n == 0) continue;
    args[num_out++] = down.Args(up + begin * inner, out + begin * width, n);
  }
  step.backend.MatMul({args, num_out}, step.scratch);
}

void Moe::AddShared(StepContext& step, const float* x, float* y) const {
  const int64_t rows = step.num_tokens();
  float* shared = step.Floats(rows * hidden_);
  shared_->Forward(step, x, x, shared);
  if (spec_.shared_gate) {
    float* gate = step.Floats(rows);
    Project(step, x, rows, {{&shared_gate_, gate}});
    step.backend.Map({.x = gate,
                      .x_stride = rows,
                      .out = gate,
                      .num_rows = 1,
                      .n = rows,
                      .fn = MapFn::kSigmoid});
    step.backend.ScaleRows({shared, gate, shared, rows, hidden_});
  }
  step.backend.Add({shared, y, rows * hidden_});
}

void Moe::Forward(StepContext& step, const float* x, const float* router_x, float* y) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t width = expert_width();
  const int top_k = spec_.router.top_k;
  int32_t* chosen = step.scratch.Alloc<int32_t>(static_cast<size_t>(rows * top_k));
  float* weights = step.Floats(rows * top_k);
  Route(step, router_x, chosen, weights);
  const Dispatch dispatch = Sort(step, chosen);

  const bool latent = spec_.latent_size > 0;
  const float* in = x;
  float* sum = y;
  if (latent) {
    float* projected = step.Floats(rows * width);
    Project(step, x, rows, {{&latent_down_, projected}});
    in = projected;
    sum = step.Floats(rows * width);
  }
  ShowInput(step, in);
  float* answers = step.Floats(dispatch.num_rows * width);
  RunExperts(step, in, dispatch, answers);
  step.backend.MoeCombine({answers, dispatch.row_of_choice, weights, sum, rows, top_k, width});
  if (latent) {
    if (spec_.latent_norm) latent_norm_.Apply(step, sum, sum, rows, width);
    Project(step, sum, rows, {{&latent_up_, y}});
  }
  if (shared_ != nullptr) AddShared(step, x, y);
}

void Moe::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context, {&router_, &latent_down_});
  for (const Expert& expert : experts_) {
    VisitLinears(visit, context, {&expert.gate_proj, &expert.up_proj, &expert.down_proj});
  }
  VisitLinears(visit, context, {&latent_up_});
  if (shared_ != nullptr) shared_->VisitWeights(visit, context);
  VisitLinears(visit, context, {&shared_gate_});
}

}  // namespace tq

#include "model/blocks/plain_block.h"

namespace tq {

Result<std::unique_ptr<Block>> PlainBlock::Load(const ModelSpec& model, const BlockSpec& spec,
                                                TensorLoader& loader) {
  auto block = std::make_unique<PlainBlock>();
  const int64_t hidden = model.hidden_size;
  block->residual_ = spec.residual;
  block->hidden_ = hidden;
  const bool single = spec.residual == Residual::kSingle;
  const bool sandwich = spec.residual == Residual::kSandwich;
  TQ_ASSIGN_OR_RETURN(
      block->mixer_norm_,
      Norm::Load(spec.norm, spec.prefix + (single ? "norm" : "input_layernorm") + ".weight", hidden,
                 loader));
  TQ_ASSIGN_OR_RETURN(block->mixer_,
                      LoadMixer(spec.mixer, spec.prefix + spec.mixer_name, hidden, loader));
  const std::string post = spec.prefix + "post_attention_layernorm.weight";
  if (sandwich) {
    TQ_ASSIGN_OR_RETURN(block->post_mixer_norm_, Norm::Load(spec.post_norm, post, hidden, loader));
    TQ_ASSIGN_OR_RETURN(
        block->ffn_norm_,
        Norm::Load(spec.norm, spec.prefix + "pre_feedforward_layernorm.weight", hidden, loader));
  } else if (!single) {
    TQ_ASSIGN_OR_RETURN(block->ffn_norm_, Norm::Load(spec.norm, post, hidden, loader));
  }
  TQ_ASSIGN_OR_RETURN(block->ffn_, LoadFfn(spec.ffn, spec.prefix + spec.ffn_name, hidden, loader));
  if (sandwich) {
    TQ_RETURN_IF_ERROR(block->LoadSandwich(spec, loader));
  }
  block->num_layers_ = static_cast<int64_t>(model.blocks.size());
  return std::unique_ptr<Block>(std::move(block));
}

Status PlainBlock::LoadSandwich(const BlockSpec& spec, TensorLoader& loader) {
  const auto norm = [&](const NormSpec& norm_spec, const char* name) {
    return Norm::Load(norm_spec, spec.prefix + name + ".weight", hidden_, loader);
  };
  TQ_ASSIGN_OR_RETURN(post_ffn_norm_, norm(spec.post_norm, "post_feedforward_layernorm"));
  if (!std::holds_alternative<std::monostate>(spec.parallel_ffn)) {
    TQ_ASSIGN_OR_RETURN(post_dense_norm_, norm(spec.norm, "post_feedforward_layernorm_1"));
    TQ_ASSIGN_OR_RETURN(parallel_norm_, norm(spec.norm, "pre_feedforward_layernorm_2"));
    TQ_ASSIGN_OR_RETURN(parallel_, LoadFfn(spec.parallel_ffn, spec.prefix, hidden_, loader));
    TQ_ASSIGN_OR_RETURN(post_parallel_norm_, norm(spec.norm, "post_feedforward_layernorm_2"));
  }
  if (spec.per_layer_input > 0) {
    per_layer_ = spec.per_layer_input;
    TQ_ASSIGN_OR_RETURN(per_layer_gate_, loader.LoadLinear(spec.prefix + "per_layer_input_gate",
                                                           per_layer_, hidden_, false));
    TQ_ASSIGN_OR_RETURN(
        per_layer_projection_,
        loader.LoadLinear(spec.prefix + "per_layer_projection", hidden_, per_layer_, false));
    TQ_ASSIGN_OR_RETURN(post_per_layer_norm_, norm(spec.norm, "post_per_layer_input_norm"));
  }
  if (!spec.layer_scalar.empty()) {
    TQ_ASSIGN_OR_RETURN(layer_scalar_, loader.Vector(spec.layer_scalar, 1, TensorRole::kSmall));
  }
  if (!spec.causal_scalar.empty()) {
    TQ_ASSIGN_OR_RETURN(causal_scalar_, loader.Vector(spec.causal_scalar, 1, TensorRole::kSmall));
  }
  return Status::Ok();
}

CacheNeeds PlainBlock::Needs(const KvSettings& settings) const {
  return mixer_ != nullptr ? mixer_->Needs(settings) : CacheNeeds{};
}

void PlainBlock::Forward(StepContext& step, Residuals& residuals, KvCache& cache,
                         size_t layer) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t n = rows * hidden_;
  float* x = residuals.x;
  float* normed = step.Floats(n);
  float* y = step.Floats(n);
  const bool sandwich = residual_ == Residual::kSandwich;
  const bool single = residual_ == Residual::kSingle;

  if (mixer_ != nullptr) {
    mixer_norm_.Apply(step, x, normed, rows, hidden_);
    mixer_->Forward(step, normed, y, cache, layer);
    if (sandwich) post_mixer_norm_.Apply(step, y, y, rows, hidden_);
    step.backend.Add({y, x, n});
  }
  if (ffn_ != nullptr) {
    (single ? mixer_norm_ : ffn_norm_).Apply(step, x, normed, rows, hidden_);
    ForwardFfn(step, x, normed, y);
    if (sandwich) post_ffn_norm_.Apply(step, y, y, rows, hidden_);
    step.backend.Add({y, x, n});
  }
  if (per_layer_ > 0) AddPerLayerInput(step, residuals, layer);
  if (!layer_scalar_.empty()) {
    const bool causal = step.plan.causal && !causal_scalar_.empty();
    step.backend.Map({.x = x,
                      .x_stride = hidden_,
                      .out = x,
                      .num_rows = rows,
                      .n = hidden_,
                      .scale = causal ? causal_scalar_[0] : layer_scalar_[0]});
  }
}

// The router of the parallel MoE reads the raw residual, its experts a norm of it.
void PlainBlock::ForwardFfn(StepContext& step, const float* x, float* normed, float* y) const {
  ffn_->Forward(step, normed, normed, y);
  if (parallel_ == nullptr) return;
  const int64_t rows = step.num_tokens();
  float* experts = step.Floats(rows * hidden_);
  post_dense_norm_.Apply(step, y, y, rows, hidden_);
  parallel_norm_.Apply(step, x, normed, rows, hidden_);
  parallel_->Forward(step, normed, x, experts);
  post_parallel_norm_.Apply(step, experts, experts, rows, hidden_);
  step.backend.Add({experts, y, rows * hidden_});
}

// x += norm(projection(gelu(gate x) * input)).
void PlainBlock::AddPerLayerInput(StepContext& step, const Residuals& residuals,
                                  size_t layer) const {
  const int64_t rows = step.num_tokens();
  float* gate = step.Floats(rows * per_layer_);
  float* input = step.Floats(rows * per_layer_);
  float* y = step.Floats(rows * hidden_);
  Project(step, residuals.x, rows, {{&per_layer_gate_, gate}});
  step.backend.CopyRows({.x = residuals.per_layer_inputs + static_cast<int64_t>(layer) * per_layer_,
                         .x_stride = num_layers_ * per_layer_,
                         .out = input,
                         .out_stride = per_layer_,
                         .num_rows = rows,
                         .n = per_layer_});
  step.backend.Glu({Activation::kGeluTanh, gate, input, gate, rows * per_layer_});
  Project(step, gate, rows, {{&per_layer_projection_, y}});
  post_per_layer_norm_.Apply(step, y, y, rows, hidden_);
  step.backend.Add({y, residuals.x, rows * hidden_});
}

void PlainBlock::VisitWeights(WeightVisitor visit, void* context) const {
  if (mixer_ != nullptr) mixer_->VisitWeights(visit, context);
  if (ffn_ != nullptr) ffn_->VisitWeights(visit, context);
  if (parallel_ != nullptr) parallel_->VisitWeights(visit, context);
  VisitLinears(visit, context, {&per_layer_gate_, &per_layer_projection_});
}

}  // namespace tq

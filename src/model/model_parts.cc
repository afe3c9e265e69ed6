#include "model/model_parts.h"

#include <cmath>

#include "model/ffns/dense.h"
#include "tensor/half.h"

namespace tq {
namespace {

// The reference rounds such constants to the type of the weights, bf16.
float RootInBf16(int64_t n) {
  return Bf16ToF32(F32ToBf16(static_cast<float>(std::sqrt(static_cast<double>(n)))));
}

}  // namespace

Result<PerLayerEmbedding> PerLayerEmbedding::Load(const ModelSpec& spec, TensorLoader& loader) {
  PerLayerEmbedding out;
  out.width_ = spec.per_layer_input;
  out.num_layers_ = static_cast<int64_t>(spec.blocks.size());
  out.token_scale_ = RootInBf16(out.width_);
  out.model_scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.hidden_size)));
  const int64_t all = out.width_ * out.num_layers_;
  TQ_ASSIGN_OR_RETURN(out.table_, loader.Matrix("model.embed_tokens_per_layer.weight",
                                                spec.per_layer_vocab, all, TensorRole::kEmbedding));
  TQ_ASSIGN_OR_RETURN(out.projection_, loader.LoadLinear("model.per_layer_model_projection", all,
                                                         spec.hidden_size, false));
  TQ_ASSIGN_OR_RETURN(
      out.norm_,
      Norm::Load(spec.head.norm, "model.per_layer_projection_norm.weight", out.width_, loader));
  return out;
}

// (norm(projection x / sqrt(hidden)) + sqrt(width) table[id]) / sqrt(2).
const float* PerLayerEmbedding::Compute(StepContext& step, const float* x) const {
  const int64_t rows = step.num_tokens();
  const int64_t n = width_ * num_layers_;
  float* out = step.Floats(rows * n);
  const ScratchScope scope(step.scratch);
  float* tokens = step.Floats(rows * n);
  step.backend.Embed({table_.get(), step.plan.ids, token_scale_, tokens});
  Project(step, x, rows, {{&projection_, out}});
  MapArgs scale = {.x = out, .x_stride = n, .out = out, .num_rows = rows, .n = n};
  scale.scale = model_scale_;
  step.backend.Map(scale);
  norm_.Apply(step, out, out, rows * num_layers_, width_);
  step.backend.Add({tokens, out, rows * n});
  scale.scale = static_cast<float>(std::sqrt(0.5));
  step.backend.Map(scale);
  return out;
}

void PerLayerEmbedding::VisitWeights(WeightVisitor visit, void* context) const {
  visit(context, "model.embed_tokens_per_layer", *table_);
  VisitLinears(visit, context, {&projection_});
}

Result<SelfConditioning> SelfConditioning::Load(const ModelSpec& spec, TensorLoader& loader) {
  SelfConditioning out;
  out.hidden_ = spec.hidden_size;
  const std::string prefix = "model.self_conditioning.";
  TQ_ASSIGN_OR_RETURN(out.pre_norm_, Norm::Load(spec.head.norm, prefix + "pre_norm.weight",
                                                spec.hidden_size, loader));
  out.post_norm_.spec = {.eps = spec.head.norm.eps, .weight = false};
  TQ_ASSIGN_OR_RETURN(out.ffn_,
                      DenseFfn::Load(*spec.self_conditioning, prefix, spec.hidden_size, loader));
  return out;
}

void SelfConditioning::Apply(StepContext& step, const float* soft, float* x) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t n = rows * hidden_;
  if (soft != nullptr) {  // the answer to zeros is zero
    float* normed = step.Floats(n);
    float* y = step.Floats(n);
    pre_norm_.Apply(step, soft, normed, rows, hidden_);
    ffn_->Forward(step, normed, normed, y);
    step.backend.Add({y, x, n});
  }
  post_norm_.Apply(step, x, x, rows, hidden_);
}

Result<ModelParts> ModelParts::Load(const ModelSpec& spec, TensorLoader& loader) {
  ModelParts parts;
  TQ_ASSIGN_OR_RETURN(parts.embed, loader.Matrix("model.embed_tokens.weight", spec.vocab_size,
                                                 spec.hidden_size, TensorRole::kEmbedding));
  const auto load_head = [&]() -> Status {
    if (spec.tie_word_embeddings) return Status::Ok();
    TQ_ASSIGN_OR_RETURN(parts.lm_head, loader.Matrix("lm_head.weight", spec.vocab_size,
                                                     spec.hidden_size, TensorRole::kLinear));
    return Status::Ok();
  };
  // Last in the order of the forward pass, but early in memory: its stored form, by far the
  // largest, is then not there beside everything else.
  if (loader.reads()) TQ_RETURN_IF_ERROR(load_head());
  if (spec.per_layer_input > 0) {
    TQ_ASSIGN_OR_RETURN(parts.per_layer, PerLayerEmbedding::Load(spec, loader));
  }
  if (spec.self_conditioning) {
    TQ_ASSIGN_OR_RETURN(parts.self_conditioning, SelfConditioning::Load(spec, loader));
  }
  for (const BlockSpec& block_spec : spec.blocks) {
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<Block> block, Block::Load(spec, block_spec, loader));
    parts.blocks.push_back(std::move(block));
  }
  const Residual residual = spec.blocks.empty() ? Residual::kPre : spec.blocks[0].residual;
  if (residual == Residual::kHyper) {
    TQ_ASSIGN_OR_RETURN(
        parts.final_streams,
        HyperConnection::Load(spec, "model.hyper_connection_mixer.", false, loader));
  } else {
    if (residual == Residual::kAttend) {
      TQ_ASSIGN_OR_RETURN(
          parts.final_mix,
          ResidualMix::Load("model.output_attn_res", spec.head.norm.eps, spec.hidden_size, loader));
    }
    TQ_ASSIGN_OR_RETURN(parts.final_norm,
                        Norm::Load(spec.head.norm, "model.norm.weight", spec.hidden_size, loader));
  }
  if (!loader.reads()) TQ_RETURN_IF_ERROR(load_head());
  return parts;
}

}  // namespace tq

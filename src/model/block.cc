#include "model/block.h"

#include "model/ffns/dense.h"
#include "model/mixers/attention.h"

namespace tq {

Result<Block> Block::Load(const BlockSpec& spec, int64_t hidden_size, WeightLoader& loader) {
  Block block;
  block.residual_ = spec.residual;
  block.norm_ = spec.norm;
  block.hidden_size_ = hidden_size;
  TQ_ASSIGN_OR_RETURN(block.input_norm_,
                      loader.Vector(spec.prefix + "input_layernorm.weight", hidden_size));
  TQ_ASSIGN_OR_RETURN(block.mixer_,
                      Attention::Load(spec.mixer, spec.prefix + "self_attn.", hidden_size, loader));
  TQ_ASSIGN_OR_RETURN(block.post_attention_norm_,
                      loader.Vector(spec.prefix + "post_attention_layernorm.weight", hidden_size));
  if (spec.residual == Residual::kSandwich) {
    TQ_ASSIGN_OR_RETURN(
        block.pre_ffn_norm_,
        loader.Vector(spec.prefix + "pre_feedforward_layernorm.weight", hidden_size));
    TQ_ASSIGN_OR_RETURN(
        block.post_ffn_norm_,
        loader.Vector(spec.prefix + "post_feedforward_layernorm.weight", hidden_size));
  }
  TQ_ASSIGN_OR_RETURN(block.ffn_,
                      DenseFfn::Load(spec.ffn, spec.prefix + "mlp.", hidden_size, loader));
  return block;
}

void Block::Norm(StepContext& step, const std::vector<float>& w, const float* x, float* out) const {
  step.backend.RmsNorm({.x = x,
                        .w = w.data(),
                        .plus_one = norm_.plus_one,
                        .eps = norm_.eps,
                        .out = out,
                        .num_rows = step.plan.num_tokens(),
                        .n = hidden_size_});
}

void Block::Forward(StepContext& step, float* x, LayerCache& cache) const {
  const ScratchScope scope(step.scratch);
  const int64_t n = step.plan.num_tokens() * hidden_size_;
  float* normed = step.scratch.Alloc<float>(static_cast<size_t>(n));
  float* y = step.scratch.Alloc<float>(static_cast<size_t>(n));
  const bool sandwich = residual_ == Residual::kSandwich;

  Norm(step, input_norm_, x, normed);
  mixer_->Forward(step, normed, y, cache);
  if (sandwich) Norm(step, post_attention_norm_, y, y);
  step.backend.Add({y, x, n});

  Norm(step, sandwich ? pre_ffn_norm_ : post_attention_norm_, x, normed);
  ffn_->Forward(step, normed, y);
  if (sandwich) Norm(step, post_ffn_norm_, y, y);
  step.backend.Add({y, x, n});
}

}  // namespace tq

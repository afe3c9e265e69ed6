#include "model/blocks/attend_block.h"

namespace tq {

Result<ResidualMix> ResidualMix::Load(const std::string& path, float eps, int64_t hidden,
                                      TensorLoader& loader) {
  ResidualMix mix;
  mix.eps_ = eps;
  TQ_ASSIGN_OR_RETURN(mix.omega_, loader.Vector(path + "_norm.weight", hidden));
  TQ_ASSIGN_OR_RETURN(const std::vector<float> proj,
                      loader.Floats(path + "_proj.weight", {1, hidden}, TensorRole::kSmall));
  for (size_t i = 0; i < mix.omega_.size(); ++i) mix.omega_[i] *= proj[i];
  return mix;
}

void ResidualMix::Apply(StepContext& step, const Residuals& residuals, float* out) const {
  const auto n = static_cast<int64_t>(omega_.size());
  const int64_t rows = step.num_tokens();
  if (residuals.num_snapshots == 0) {
    step.backend.CopyRows({residuals.x, n, out, n, rows, n});
    return;
  }
  const size_t count = residuals.num_snapshots + 1;
  const float** candidates = step.scratch.Alloc<const float*>(count);
  for (size_t i = 0; i + 1 < count; ++i) candidates[i] = residuals.snapshots[i];
  candidates[count - 1] = residuals.x;
  step.backend.ResidualMix({{candidates, count}, omega_.data(), eps_, out, rows, n});
}

Result<std::unique_ptr<Block>> AttendBlock::Load(const ModelSpec& model, const BlockSpec& spec,
                                                 TensorLoader& loader) {
  auto block = std::make_unique<AttendBlock>();
  const int64_t hidden = model.hidden_size;
  block->hidden_ = hidden;
  block->snapshot_ = spec.snapshot;
  TQ_ASSIGN_OR_RETURN(block->mixer_mix_, ResidualMix::Load(spec.prefix + "self_attention_res",
                                                           spec.norm.eps, hidden, loader));
  TQ_ASSIGN_OR_RETURN(
      block->mixer_norm_,
      Norm::Load(spec.norm, spec.prefix + "input_layernorm.weight", hidden, loader));
  TQ_ASSIGN_OR_RETURN(block->mixer_,
                      LoadMixer(spec.mixer, spec.prefix + spec.mixer_name, hidden, loader));
  TQ_ASSIGN_OR_RETURN(block->ffn_mix_,
                      ResidualMix::Load(spec.prefix + "mlp_res", spec.norm.eps, hidden, loader));
  TQ_ASSIGN_OR_RETURN(
      block->ffn_norm_,
      Norm::Load(spec.norm, spec.prefix + "post_attention_layernorm.weight", hidden, loader));
  TQ_ASSIGN_OR_RETURN(block->ffn_, LoadFfn(spec.ffn, spec.prefix + spec.ffn_name, hidden, loader));
  return std::unique_ptr<Block>(std::move(block));
}

void AttendBlock::Forward(StepContext& step, Residuals& residuals, KvCache& cache,
                          size_t layer) const {
  const int64_t rows = step.num_tokens();
  const int64_t n = rows * hidden_;
  // A snapshot keeps the old buffer for the rest of the step; the residual goes on in a new one,
  // which therefore is taken before the scope of this block's own memory.
  float* fresh = snapshot_ ? step.Floats(n) : nullptr;
  const ScratchScope scope(step.scratch);
  float* in = step.Floats(n);
  float* y = step.Floats(n);
  mixer_mix_.Apply(step, residuals, in);
  mixer_norm_.Apply(step, in, in, rows, hidden_);
  mixer_->Forward(step, in, y, cache, layer);
  if (snapshot_) {
    residuals.snapshots[residuals.num_snapshots++] = residuals.x;
    residuals.x = fresh;
    step.backend.CopyRows({y, hidden_, fresh, hidden_, rows, hidden_});
  } else {
    step.backend.Add({y, residuals.x, n});
  }
  ffn_mix_.Apply(step, residuals, in);
  ffn_norm_.Apply(step, in, in, rows, hidden_);
  ffn_->Forward(step, in, in, y);
  step.backend.Add({y, residuals.x, n});
}

void AttendBlock::VisitWeights(WeightVisitor visit, void* context) const {
  mixer_->VisitWeights(visit, context);
  ffn_->VisitWeights(visit, context);
}

}  // namespace tq

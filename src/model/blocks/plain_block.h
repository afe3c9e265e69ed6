// One residual stream: a mixer and a feed-forward part with norms before (kPre), before and after
// (kSandwich), or one part alone (kSingle). Gemma 4's additions hang on the sandwich form: a MoE
// beside the dense part, a per-layer embedding, a scalar at the end.
#pragma once

#include "model/block.h"

namespace tq {

class PlainBlock : public Block {
 public:
  static Result<std::unique_ptr<Block>> Load(const ModelSpec& model, const BlockSpec& spec,
                                             TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override;
  void Forward(StepContext& step, Residuals& residuals, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  Status LoadSandwich(const BlockSpec& spec, TensorLoader& loader);
  void ForwardFfn(StepContext& step, const float* x, float* normed, float* y) const;
  void AddPerLayerInput(StepContext& step, const Residuals& residuals, size_t layer) const;

  Residual residual_ = Residual::kPre;
  int64_t hidden_ = 0;
  std::unique_ptr<Mixer> mixer_;
  std::unique_ptr<Ffn> ffn_;
  Norm mixer_norm_;
  Norm ffn_norm_;
  Norm post_mixer_norm_;  // kSandwich
  Norm post_ffn_norm_;
  // The MoE beside the dense part.
  std::unique_ptr<Ffn> parallel_;
  Norm post_dense_norm_;
  Norm parallel_norm_;
  Norm post_parallel_norm_;
  // The per-layer embedding.
  int64_t per_layer_ = 0;
  int64_t num_layers_ = 0;
  Linear per_layer_gate_;
  Linear per_layer_projection_;
  Norm post_per_layer_norm_;
  std::vector<float> layer_scalar_;
  std::vector<float> causal_scalar_;  // empty: layer_scalar_
};

}  // namespace tq

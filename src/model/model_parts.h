// ModelParts: the prepared pieces of a model, loaded in the order of the forward pass. With a
// NeedRecorder in place of a loader it lists the tensors and prepares nothing.
#pragma once

#include <memory>
#include <vector>

#include "model/block.h"
#include "model/blocks/attend_block.h"
#include "model/blocks/hyper_block.h"
#include "model/spec.h"

namespace tq {

// gemma4: what every layer gets of a token's identity, [T, num_layers, width].
class PerLayerEmbedding {
 public:
  static Result<PerLayerEmbedding> Load(const ModelSpec& spec, TensorLoader& loader);
  // x: the scaled embeddings [T, hidden].
  const float* Compute(StepContext& step, const float* x) const;
  void VisitWeights(WeightVisitor visit, void* context) const;

 private:
  int64_t width_ = 0;
  int64_t num_layers_ = 0;
  float token_scale_ = 1.0f;
  float model_scale_ = 1.0f;
  std::unique_ptr<Weight> table_;
  Linear projection_;
  Norm norm_;
};

// diffusion_gemma: the canvas sees what it predicted before.
class SelfConditioning {
 public:
  static Result<SelfConditioning> Load(const ModelSpec& spec, TensorLoader& loader);
  // x [T, hidden] = norm(x + ffn(pre_norm(soft))). soft [T, hidden], or null for zeros.
  void Apply(StepContext& step, const float* soft, float* x) const;
  void VisitWeights(WeightVisitor visit, void* context) const {
    ffn_->VisitWeights(visit, context);
  }

 private:
  int64_t hidden_ = 0;
  Norm pre_norm_, post_norm_;
  std::unique_ptr<Ffn> ffn_;
};

struct ModelParts {
  static Result<ModelParts> Load(const ModelSpec& spec, TensorLoader& loader);

  std::unique_ptr<Weight> embed;
  std::optional<PerLayerEmbedding> per_layer;
  std::optional<SelfConditioning> self_conditioning;
  std::vector<std::unique_ptr<Block>> blocks;
  std::optional<ResidualMix> final_mix;          // kAttend
  std::optional<HyperConnection> final_streams;  // kHyper, in place of the norm
  Norm final_norm;
  std::unique_ptr<Weight> lm_head;  // null when tied
};

}  // namespace tq

// Softmax attention with grouped KV heads: optional biases, per-head norms, rope, sliding window.
#pragma once

#include "model/block.h"

namespace tq {

void AppendAttentionTensors(const AttentionSpec& spec, const std::string& prefix,
                            int64_t hidden_size, std::vector<TensorNeed>& out);

class Attention : public Mixer {
 public:
  static Result<std::unique_ptr<Mixer>> Load(const AttentionSpec& spec, const std::string& prefix,
                                             int64_t hidden_size, WeightLoader& loader);
  KvLayout CacheNeeds(KvType type) const override;
  void Forward(StepContext& step, const float* x, float* y, LayerCache& cache) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  explicit Attention(const AttentionSpec& spec) : spec_(spec) {}
  void NormHeads(StepContext& step, const std::vector<float>& w, float* x, int num_heads) const;
  void RotateHeads(StepContext& step, float* x, int num_heads) const;

  AttentionSpec spec_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  std::vector<float> q_norm_, k_norm_;
};

}  // namespace tq

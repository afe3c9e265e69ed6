// Softmax attention with grouped KV heads, and its options: biases, per-head norms, rope, sliding
// window, output gates, sinks, values taken from the keys, K and V shared with an earlier layer,
// and sparse attention over the best blocks of keys.
#pragma once

#include "model/block.h"
#include "model/mixers/block_index.h"

namespace tq {

class Attention : public Mixer {
 public:
  static Result<std::unique_ptr<Mixer>> Load(const AttentionSpec& spec, const std::string& prefix,
                                             int64_t hidden_size, TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override;
  void Forward(StepContext& step, const float* x, float* y, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  explicit Attention(const AttentionSpec& spec) : spec_(spec) {}
  bool owns_kv() const { return spec_.kv_layer < 0; }
  int64_t gate_rows() const;
  // Queries and gates, ready to use; keys and values as the matrices give them (null when shared).
  void ProjectInputs(StepContext& step, const float* x, float* q, float* gate, float* k,
                     float* v) const;
  void PrepareQuery(StepContext& step, float* q) const;
  void AppendKv(StepContext& step, float* k, float* v, LayerCache& cache) const;
  void ScaleByPosition(StepContext& step, float* q) const;
  void ApplyGate(StepContext& step, float* gate, float* mixed) const;

  AttentionSpec spec_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_, gate_proj_;
  Norm q_norm_, k_norm_;
  std::vector<float> sinks_;
  std::optional<BlockIndex> index_;
};

}  // namespace tq

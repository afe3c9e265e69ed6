// Multi-head latent attention. The cache holds one latent and one rope key per token, for all
// heads. Always in its absorbed form: queries are taken into the latent space, so that prefill and
// decode do the same arithmetic and give the same bits. DeepSeek-V2, 2024.
#pragma once

#include "model/block.h"
#include "model/mixers/token_index.h"

namespace tq {

class Mla : public Mixer {
 public:
  static Result<std::unique_ptr<Mixer>> Load(const MlaSpec& spec, const std::string& prefix,
                                             int64_t hidden_size, TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override;
  void Forward(StepContext& step, const float* x, float* y, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  explicit Mla(const MlaSpec& spec) : spec_(spec) {}
  int64_t query_dim() const { return spec_.qk_nope_head_dim + spec_.qk_rope_head_dim; }
  int64_t key_dim() const { return spec_.kv_lora_rank + spec_.qk_rope_head_dim; }
  Status LoadHeads(const std::string& prefix, TensorLoader& loader);
  void Rotate(StepContext& step, float* x, int num_heads) const;
  void AppendLatent(StepContext& step, const float* x, LayerCache& cache) const;
  // in: x, or the normed query latent with q_lora_rank. keys_q [T, H, key_dim].
  void ProjectQuery(StepContext& step, const float* in, float* keys_q) const;
  // Head h of y = weights[h] * head h of x; heads begin a stride apart, tokens H strides.
  void PerHead(StepContext& step, const std::vector<std::unique_ptr<Weight>>& weights,
               const float* x, int64_t x_stride, float* y, int64_t y_stride) const;

  MlaSpec spec_;
  Linear q_proj_, q_a_proj_, q_b_proj_, kv_a_proj_, gate_proj_, o_proj_;
  Norm q_norm_, kv_norm_;
  std::vector<std::unique_ptr<Weight>> query_to_latent_;  // per head [r, nope]
  std::vector<std::unique_ptr<Weight>> latent_to_value_;  // per head [v, r]
  std::optional<TokenIndex> index_;
};

}  // namespace tq

#include "model/mixers/token_index.h"

#include <algorithm>
#include <cmath>

#include "model/rope.h"

namespace tq {

int64_t SelectionStride(const StepPlan& plan) {
  int64_t length = 0;
  for (const SequencePlan& sequence : plan.sequences) {
    length = std::max(length, sequence.start_position + sequence.num_tokens);
  }
  return (length + 63) / 64;
}

Result<TokenIndex> TokenIndex::Load(const TokenIndexSpec& spec, int rope, const std::string& prefix,
                                    int64_t hidden_size, int64_t q_lora_rank,
                                    TensorLoader& loader) {
  TokenIndex out;
  out.spec_ = spec;
  out.rope_ = rope;
  const int64_t d = spec.head_dim;
  TQ_ASSIGN_OR_RETURN(out.wq_b_, loader.LoadLinear(prefix + "wq_b", spec.num_heads * d, q_lora_rank,
                                                   false, TensorRole::kSmall));
  TQ_ASSIGN_OR_RETURN(out.wk_,
                      loader.LoadLinear(prefix + "wk", d, hidden_size, false, TensorRole::kSmall));
  TQ_ASSIGN_OR_RETURN(out.k_norm_, loader.Vector(prefix + "k_norm.weight", d));
  TQ_ASSIGN_OR_RETURN(out.k_norm_bias_, loader.Vector(prefix + "k_norm.bias", d));
  TQ_ASSIGN_OR_RETURN(out.weights_proj_, loader.LoadLinear(prefix + "weights_proj", spec.num_heads,
                                                           hidden_size, false, TensorRole::kSmall));
  return out;
}

void TokenIndex::AddNeeds(const KvSettings& settings, CacheNeeds& needs) const {
  needs.paged.push_back({.settings = settings,
                         .num_kv_heads = 1,
                         .head_dim = spec_.head_dim,
                         .values = KvValues::kNone});
}

TokenIndex::Selection TokenIndex::Select(StepContext& step, const float* x, const float* latent,
                                         LayerCache& cache) const {
  const int64_t rows = step.num_tokens();
  const int64_t d = spec_.head_dim;
  const int64_t stride = SelectionStride(step.plan);
  uint64_t* bits = step.scratch.Alloc<uint64_t>(static_cast<size_t>(rows * stride));
  const ScratchScope scope(step.scratch);
  constexpr float kLayerNormEps = 1e-6f;
  float* k = step.Floats(rows * d);
  float* w = step.Floats(rows * spec_.num_heads);
  float* q = step.Floats(rows * spec_.num_heads * d);
  Project(step, x, rows, {{&wk_, k}, {&weights_proj_, w}});
  Project(step, latent, rows, {{&wq_b_, q}});
  step.backend.LayerNorm({k, k_norm_.data(), k_norm_bias_.data(), kLayerNormEps, k, rows, d});
  ApplyRope(step, rope_, {k, 1, spec_.head_dim, 0, spec_.interleaved});
  ApplyRope(step, rope_, {q, spec_.num_heads, spec_.head_dim, 0, spec_.interleaved});
  const LayerCache::Paged& keys = cache.paged[1];
  step.backend.KvAppend({&step.plan, keys.layout, keys.pages.data(), k, nullptr});
  const double scale = 1.0 / std::sqrt(static_cast<double>(d) * spec_.num_heads);
  step.backend.IndexSelect({.plan = &step.plan,
                            .layout = keys.layout,
                            .pages = keys.pages.data(),
                            .q = q,
                            .w = w,
                            .num_heads = spec_.num_heads,
                            .scale = static_cast<float>(scale),
                            .top_k = spec_.top_k,
                            .selected = bits,
                            .selected_stride = stride},
                           step.scratch);
  return {bits, stride};
}

}  // namespace tq

#include "model/mixers/block_index.h"

#include <cmath>

#include "model/rope.h"

namespace tq {

Result<BlockIndex> BlockIndex::Load(const BlockIndexSpec& spec, int rope, const std::string& prefix,
                                    int64_t hidden_size, TensorLoader& loader) {
  BlockIndex out;
  out.spec_ = spec;
  out.rope_ = rope;
  const int64_t d = spec.head_dim;
  TQ_ASSIGN_OR_RETURN(out.index_qk_proj_,
                      loader.LoadLinear(prefix + "index_qk_proj", (spec.num_heads + 1) * d,
                                        hidden_size, false, TensorRole::kSmall));
  TQ_ASSIGN_OR_RETURN(out.q_norm_, Norm::Load(spec.norm, prefix + "q_layernorm.weight", d, loader));
  TQ_ASSIGN_OR_RETURN(out.k_norm_, Norm::Load(spec.norm, prefix + "k_layernorm.weight", d, loader));
  out.mean_.assign(static_cast<size_t>(spec.block * d), 1.0f / static_cast<float>(spec.block));
  return out;
}

void BlockIndex::AddNeeds(const KvSettings& settings, CacheNeeds& needs) const {
  needs.paged.push_back({.settings = settings,
                         .num_kv_heads = 1,
                         .head_dim = spec_.head_dim,
                         .values = KvValues::kNone});
  needs.state_floats += mean_state() + kPositionAxes;
}

// A block may begin in an earlier step. Positions fit floats exactly (below 2^24).
void BlockIndex::BlockPositions(const StepPlan& plan, bool one_axis, StateRef state,
                                int32_t* first) const {
  const auto num_tokens = static_cast<size_t>(plan.num_tokens());
  for (const SequencePlan& sequence : plan.sequences) {
    float* carried = state.base + sequence.state_slot * state.state_stride;
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      const auto t = static_cast<size_t>(sequence.first_token + i);
      for (size_t axis = 0; axis < kPositionAxes; ++axis) {
        if (plan.positions[t] % spec_.block == 0) {
          carried[axis] = static_cast<float>(one_axis ? plan.positions[t]
                                                      : plan.axis_positions[axis * num_tokens + t]);
        }
        first[axis * num_tokens + t] = static_cast<int32_t>(carried[axis]);
      }
    }
  }
}

// Every token gets the mean of itself and the block - 1 tokens before it; only those at a block's
// end are ever read. The key's position is the block's first.
void BlockIndex::AppendKeys(StepContext& step, const float* raw, LayerCache& cache) const {
  const int64_t rows = step.num_tokens();
  const int64_t d = spec_.head_dim;
  float* k = step.Floats(rows * d);
  step.backend.CausalConv({.plan = &step.plan,
                           .x = raw,
                           .x_stride = (spec_.num_heads + 1) * d,
                           .w = mean_.data(),
                           .silu = false,
                           .out = k,
                           .channels = d,
                           .kernel = spec_.block,
                           .state = cache.State(0)});
  k_norm_.Apply(step, k, k, rows, d);
  const auto num_positions = static_cast<size_t>(kPositionAxes * rows);
  int32_t* first = step.scratch.Alloc<int32_t>(num_positions);
  const RopeSpec& rope = (*step.rope_specs)[static_cast<size_t>(rope_)];
  const bool one_axis = rope.axes.empty() || step.plan.axis_positions.empty();
  BlockPositions(step.plan, one_axis, cache.State(mean_state()), first);
  const RopeTable table = MakeRopeTable(rope, {first, num_positions}, rows, step.scratch);
  ApplyRope(step, table, {k, 1, spec_.head_dim});
  const LayerCache::Paged& keys = cache.paged[1];
  step.backend.KvAppend({&step.plan, keys.layout, keys.pages.data(), k, nullptr});
}

BlockIndex::Selection BlockIndex::Select(StepContext& step, const float* x,
                                         LayerCache& cache) const {
  const int64_t rows = step.num_tokens();
  const int64_t d = spec_.head_dim;
  const int64_t stride = SelectionStride(step.plan);
  uint64_t* bits = step.scratch.Alloc<uint64_t>(static_cast<size_t>(rows * stride));
  const ScratchScope scope(step.scratch);
  const int64_t width = (spec_.num_heads + 1) * d;
  float* qk = step.Floats(rows * width);  // [T, query heads | key]
  float* q = step.Floats(rows * spec_.num_heads * d);
  Project(step, x, rows, {{&index_qk_proj_, qk}});
  step.backend.CopyRows({qk, width, q, spec_.num_heads * d, rows, spec_.num_heads * d});
  q_norm_.Apply(step, q, q, rows * spec_.num_heads, d);
  ApplyRope(step, rope_, {q, spec_.num_heads, spec_.head_dim});
  AppendKeys(step, qk + spec_.num_heads * d, cache);
  const LayerCache::Paged& keys = cache.paged[1];
  step.backend.IndexSelect({.plan = &step.plan,
                            .layout = keys.layout,
                            .pages = keys.pages.data(),
                            .q = q,
                            .num_heads = spec_.num_heads,
                            .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d))),
                            .top_k = spec_.budget / spec_.block,
                            .block = spec_.block,
                            .selected = bits,
                            .selected_stride = stride},
                           step.scratch);
  return {bits, stride};
}

}  // namespace tq

#include "engine/workspace.h"

#include <algorithm>
#include <vector>

#include "cache/kv_cache.h"
#include "model/step_context.h"
#include "tensor/scratch.h"

namespace tq {
namespace {

// Indexers hold bits and scores for every position; other layers' scratch does not grow with the
// context.
bool HasIndexer(const std::vector<CacheNeeds>& needs) {
  return std::any_of(needs.begin(), needs.end(), [](const CacheNeeds& layer) {
    return std::any_of(layer.paged.begin(), layer.paged.end(),
                       [](const KvLayout& layout) { return layout.values == KvValues::kNone; });
  });
}

}  // namespace

Result<int64_t> MeasureWorkspace(const Model& model, Backend& backend, KvType type,
                                 int64_t context) {
  const std::vector<CacheNeeds> needs = model.Needs(type);
  TQ_ASSIGN_OR_RETURN(KvCache cache, KvCache::Create(needs, 1, 1));
  const int64_t num_tokens = std::min<int64_t>(kPageTokens, context);
  const int64_t start = HasIndexer(needs) ? context - num_tokens : 0;
  StepPlan plan;
  plan.ids.assign(static_cast<size_t>(num_tokens), 0);
  for (int64_t i = 0; i < num_tokens; ++i) {
    plan.positions.push_back(static_cast<int32_t>(start + i));
  }
  // All pages of the sequence are the cache's only one: what it holds does not matter here.
  const auto num_pages = static_cast<size_t>(KvCache::PagesFor(start + num_tokens));
  plan.sequences.push_back({.first_token = 0,
                            .num_tokens = num_tokens,
                            .start_position = start,
                            .pages = std::vector<int32_t>(num_pages, 0)});
  plan.logits_tokens.push_back(static_cast<int32_t>(num_tokens - 1));
  std::vector<float> logits(static_cast<size_t>(model.spec().vocab_size));
  Scratch scratch;
  StepContext step{.backend = backend, .scratch = scratch, .plan = plan, .ropes = {}};
  model.Forward(step, cache, logits.data());
  return static_cast<int64_t>(scratch.capacity_bytes());
}

}  // namespace tq

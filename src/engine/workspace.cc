#include "engine/workspace.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "cache/kv_cache.h"
#include "model/step_context.h"
#include "tensor/scratch.h"

namespace tq {
namespace {

// The experts of a step may get other numbers of rows: arrays end at other multiples of 64 bytes.
constexpr int64_t kRounding = int64_t{64} << 10;
// Most steps need less; what is not touched costs nothing.
constexpr size_t kAddressSpace = size_t{256} << 20;

// The last tokens of a full sequence: what indexers hold grows with the position.
void AddSequence(const StepShape& shape, int64_t num_tokens, StepPlan& plan) {
  const int64_t start = shape.context - num_tokens;
  const int64_t first = plan.num_tokens();
  for (int64_t i = 0; i < num_tokens; ++i) {
    plan.ids.push_back(0);
    plan.positions.push_back(static_cast<int32_t>(start + i));
  }
  // All pages are the cache's only one: what it holds does not matter here.
  const auto num_pages = static_cast<size_t>(KvCache::PagesFor(shape.context));
  plan.sequences.push_back({.first_token = first,
                            .num_tokens = num_tokens,
                            .start_position = start,
                            .pages = std::vector<int32_t>(num_pages, 0)});
  plan.logits_tokens.push_back(static_cast<int32_t>(first + num_tokens - 1));
}

}  // namespace

Result<int64_t> MeasureWorkspace(const Model& model, Backend& backend, const KvSettings& settings,
                                 const StepShape& shape) {
  const std::unique_ptr<Backend> sizing = backend.Sizing();
  TQ_ASSIGN_OR_RETURN(KvCache cache, KvCache::Create(model.Needs(settings), 1, 1));
  StepPlan plan;
  AddSequence(shape, std::clamp<int64_t>(shape.prefill_chunk, 1, shape.context), plan);
  for (int64_t i = 1; i < shape.max_sequences; ++i) AddSequence(shape, 1, plan);
  const auto num_logits = static_cast<size_t>(shape.max_sequences * model.spec().vocab_size);
  // Not a vector: untouched memory costs nothing.
  const std::unique_ptr<float[]> logits(new (std::nothrow) float[num_logits]);
  if (logits == nullptr) {
    return OutOfMemory(fmt::format("expected memory for the logits of {} sequences, found none",
                                   shape.max_sequences));
  }
  // One block, whose peak is what is needed and not what several blocks leave unused.
  Scratch scratch;
  const bool reserved = scratch.Reserve(kAddressSpace);
  StepContext step{
      .backend = sizing ? *sizing : backend, .scratch = scratch, .plan = plan, .ropes = {}};
  model.Forward(step, cache, logits.get());
  if (!reserved || scratch.capacity_bytes() > kAddressSpace) {
    scratch.Reset();
    step.ropes.clear();
    model.Forward(step, cache, logits.get());
  }
  return static_cast<int64_t>(scratch.peak_bytes()) + kRounding;
}

}  // namespace tq

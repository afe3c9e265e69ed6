#include "eval/step_timer.h"

#include <chrono>
#include <cstring>

namespace tq {

Result<std::unique_ptr<StepTimer>> StepTimer::Create(const Model& model, Backend& backend,
                                                     const KvSettings& kv, int64_t max_tokens,
                                                     int batch) {
  const int64_t pages = KvCache::PagesFor(max_tokens);
  TQ_ASSIGN_OR_RETURN(KvCache cache, KvCache::Create(model.Needs(kv), pages * batch, batch));
  for (size_t i = 0; i < model.spec().blocks.size(); ++i) {
    for (const LayerCache::Paged& paged : cache.layer(i).paged) {
      std::memset(paged.pages.data(), 0, paged.pages.size());
    }
  }
  return std::unique_ptr<StepTimer>(new StepTimer(model, backend, std::move(cache), pages));
}

double StepTimer::Step(int batch, int64_t num_tokens, int64_t depth) {
  StepPlan plan;
  const int64_t vocab = model_.spec().vocab_size;
  for (int b = 0; b < batch; ++b) {
    SequencePlan sequence;
    sequence.first_token = plan.num_tokens();
    sequence.num_tokens = num_tokens;
    sequence.start_position = depth;
    sequence.state_slot = b;
    for (int64_t i = 0; i < pages_each_; ++i) {
      sequence.pages.push_back(static_cast<int32_t>(b * pages_each_ + i));
    }
    for (int64_t i = 0; i < num_tokens; ++i) {
      plan.ids.push_back(static_cast<int32_t>((i * 7919 + b * 104729 + depth) % vocab));
      plan.positions.push_back(static_cast<int32_t>(depth + i));
    }
    plan.logits_tokens.push_back(static_cast<int32_t>(plan.num_tokens() - 1));
    plan.sequences.push_back(std::move(sequence));
  }
  std::vector<float> logits(static_cast<size_t>(vocab * batch));
  scratch_.Reset();
  StepContext step{backend_, scratch_, plan, nullptr, {}};
  const auto begin = std::chrono::steady_clock::now();
  model_.Forward(step, cache_, logits.data());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace tq

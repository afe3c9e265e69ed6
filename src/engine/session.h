// Session: one request on its way: its ids, page table, sampler and limits. It moves no data and
// knows no other session; the scheduler decides when it runs. Thread: created by Submit, then the
// engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/step_plan.h"
#include "cache/kv_cache.h"
#include "engine/request.h"
#include "engine/token_stream.h"
#include "sampling/sampler.h"

namespace tq {

class Session {
 public:
  // Requires: request.Validate(vocab_size, max_context) is ok.
  Session(GenerateRequest request, int64_t vocab_size, int64_t max_context,
          std::shared_ptr<TokenStream> stream);

  // Reserves memory and pages for the longest run. False (and no change) when pages are missing.
  bool Reserve(KvCache& cache);
  void ReleasePages(KvCache& cache);

  TokenStream& stream() { return *stream_; }
  bool in_prefill() const { return stats_.generated_tokens == 0; }
  // Ids whose K and V are not in the cache yet: the rest of the prompt, or the last id.
  int64_t num_pending() const { return static_cast<int64_t>(ids_.size()) - num_cached_; }

  // Appends the next num_tokens pending ids to the plan, and wants logits if no id stays pending.
  // The page table is lent to the plan until EndStep.
  void BeginStep(int64_t num_tokens, StepPlan& plan);
  // Takes the page table back. True when the step gives logits: then call Accept.
  bool EndStep(SequencePlan& sequence);
  // Draws the next id from the logits of the last one (changed in place) and hands it to the
  // stream, or sets end_reason().
  void Accept(std::span<float> logits);

  // kNone while it may go on; kCancelled when the reader said so.
  FinishReason end_reason() const;
  // Ends the stream. The session is of no use afterwards.
  void Finish(FinishReason reason);

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<int32_t> ids_;      // prompt, then generated
  std::vector<int32_t> end_ids_;  // end and stop ids of the vocabulary, sorted
  std::vector<int32_t> pages_;
  int32_t state_slot_ = -1;
  Sampler sampler_;
  std::shared_ptr<TokenStream> stream_;
  int64_t min_tokens_;
  int64_t max_tokens_;  // bounded by the context
  int64_t num_cached_ = 0;
  FinishReason end_reason_ = FinishReason::kNone;
  GenerateStats stats_;
  Clock::time_point submitted_ = Clock::now();
  Clock::time_point first_step_;
  Clock::time_point first_token_;
};

}  // namespace tq

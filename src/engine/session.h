// Session: one request on its way: its ids, what it holds in the caches, sampler and limits. It
// knows no other session; the scheduler decides when it runs. Thread: created by Submit, then the
// engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/step_plan.h"
#include "cache/disk_cache.h"
#include "cache/disk_saver.h"
#include "cache/prefix_cache.h"
#include "engine/checkpoint_rule.h"
#include "engine/loop_detector.h"
#include "engine/request.h"
#include "engine/token_stream.h"
#include "sampling/sampler.h"

namespace tq {

// Where a session's memory comes from.
struct SessionCaches {
  KvCache& kv;
  PrefixCache& prefix;
  std::string_view fingerprint;
  CheckpointRule checkpoints;
  DiskCache* disk = nullptr;  // null: none; likewise the saver
  DiskSaver* saver = nullptr;
};

class Session {
 public:
  // number: of its submission. Requires: request.Validate(vocab_size, max_context) is ok.
  Session(GenerateRequest request, int64_t number, int64_t vocab_size, int64_t max_context,
          std::shared_ptr<TokenStream> stream);

  // Whether it is served first: the higher priority, then the earlier submission.
  bool Before(const Session& other) const;
  int priority() const { return priority_; }
  TokenStream& stream() { return *stream_; }
  // Its reader is behind: it cannot take another id now.
  bool paused() const { return stream_->full(); }

  // Takes a slot, whatever of its ids the prefix cache knows, and pages for the rest; leaves
  // spare_pages available. False (and no change) when pages are missing. Requires: a free slot.
  bool Start(const SessionCaches& caches, int64_t spare_pages);
  // Gives everything back; what was computed stays in the prefix cache. It may Start again.
  void Stop(const SessionCaches& caches);
  // It waits for the disk, which fills its pages: no step may have it.
  bool loading() const { return load_ != nullptr; }
  bool load_done() const { return load_->done(); }
  // False: it has to Stop and Start again, for what was read is of no use. Requires: load_done().
  bool EndLoad(const SessionCaches& caches);

  // Ids whose K and V are not in the cache yet: the rest of the prompt, or the last id.
  int64_t num_pending() const { return static_cast<int64_t>(ids_.size()) - cache_.length; }
  bool in_prefill() const { return num_pending() > 1 || stats_.generated_tokens == 0; }
  // Takes up what others have computed of its prompt since.
  void TakeUp(const SessionCaches& caches);
  // How many pending ids the next chunk may have: at most `most`, not beyond a checkpoint.
  int64_t ChunkTokens(int64_t most, const CheckpointRule& rule) const;
  // Whether `leader` is about to compute, and to share, what this one needs next.
  bool CanWaitFor(const Session& leader, const CheckpointRule& rule) const;
  // Makes room for the next id. False when there is no page for it.
  bool Grow(PrefixCache& prefix);
  // Pages for all ids. A reader may catch up between Grow and the plan of a step: a session that
  // was paused then has none for its next id yet, and waits for the next step.
  bool has_pages() const {
    return static_cast<int64_t>(cache_.pages.size()) >=
           KvCache::PagesFor(static_cast<int64_t>(ids_.size()));
  }

  // Appends the next num_tokens pending ids to the plan, and wants logits if no id stays pending.
  // The page table is lent to the plan until EndStep. A session that wants a vector of its prompt
  // asks for hidden states instead: num_hidden() of them.
  void BeginStep(int64_t num_tokens, StepPlan& plan, std::vector<int32_t>& hidden_tokens);
  int64_t num_hidden() const { return pooler_ ? pooler_->num_wanted() : 0; }
  void AddHidden(std::span<const float> rows) { pooler_->Add(rows); }
  // Takes the page table back and shares what was computed. True when the step gives logits: then
  // call Accept.
  bool EndStep(SequencePlan& sequence, const SessionCaches& caches);
  bool constrained() const { return constraint_ != nullptr; }
  // The mask of what may come next, for Accept; it depends on the ids alone, so another thread may
  // fill it while the engine's computes a step. Sets end_reason() when it allows nothing.
  // Requires: constrained().
  void FillMask();
  // Draws the next id from the logits of the last one (changed in place) and hands it to the
  // stream, or sets end_reason(). Requires: FillMask() since the last Accept, if constrained().
  void Accept(std::span<float> logits, SamplerScratch& scratch);

  // kNone while it may go on; kCancelled when the reader said so.
  FinishReason end_reason() const;
  // Ends the stream. The session is of no use afterwards.
  void Finish(FinishReason reason);
  // Prompt tokens that were not computed.
  int64_t cached_tokens() const { return stats_.cached_tokens; }

 private:
  using Clock = std::chrono::steady_clock;

  PrefixTokens tokens() const { return {ids_, extras_}; }
  bool reuses_prefix() const { return !pooler_ || pooler_->may_skip_prefix(); }
  // All of the prompt was pooled.
  void EndPooling();
  int64_t NextCheckpoint(const CheckpointRule& rule) const {
    return rule.Next(cache_.length, stats_.prompt_tokens, cache_.branch);
  }
  void Adopt(const SessionCaches& caches, const PrefixMatch& match);
  void StartLoad(const SessionCaches& caches);
  void SaveProgress(const SessionCaches& caches, bool at_checkpoint);

  std::vector<int32_t> ids_;      // prompt, then generated
  std::vector<int32_t> end_ids_;  // end and stop ids of the vocabulary, sorted
  // Ids that never come: end ids that are ignored.
  std::vector<int32_t> never_ids_;
  std::vector<TokenExtra> extras_;
  SequenceCache cache_;
  std::shared_ptr<DiskLoad> load_;
  int64_t length_before_load_ = 0;
  int64_t saved_tokens_ = 0;  // sent to the disk while it runs
  std::optional<Pooler> pooler_;
  std::vector<float> embedding_;
  Sampler sampler_;
  int num_logprobs_;
  LoopDetector loop_detector_;
  std::shared_ptr<Constraint> constraint_;
  std::vector<uint32_t> mask_;  // of constraint_; empty without one
  std::shared_ptr<TokenStream> stream_;
  int64_t number_;
  int priority_;
  int64_t min_tokens_;
  int64_t max_tokens_;    // bounded by the context
  bool stopped_ = false;  // it starts again if it starts
  FinishReason end_reason_ = FinishReason::kNone;
  Status status_;  // why, when end_reason_ is kError
  GenerateStats stats_;
  Clock::time_point submitted_ = Clock::now();
  Clock::time_point first_step_;
  Clock::time_point first_token_;
};

}  // namespace tq

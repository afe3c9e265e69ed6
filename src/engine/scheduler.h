// Scheduler: the running sessions and the steps that serve them. Each step mixes one id of every
// decoding session with up to prefill_chunk prompt ids of the sessions in prefill. Pages are taken
// as they are needed; when none is left, the session that is served last gives way and starts again
// later. Thread: engine, but for the counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/step_plan.h"
#include "cache/disk_cache.h"
#include "cache/disk_saver.h"
#include "cache/kv_cache.h"
#include "cache/prefix_cache.h"
#include "engine/mask_ahead.h"
#include "engine/session.h"
#include "engine/step_model.h"

namespace tq {

// Exact pages (KvLayout::num_exact_pages) that the cache of an engine has, if it has so many pages.
int64_t NumExactPages(const std::vector<CacheNeeds>& needs, int max_sequences);

struct SchedulerOptions {
  int64_t num_pages = 0;
  int max_sequences = 0;
  int64_t prefill_chunk = 0;
  KvSettings kv = KvFormat::kF16;
  bool prefix_cache = true;
  int64_t state_checkpoints = 0;
  bool embeddings = false;
  DiskCacheOptions disk_cache = {};
  std::function<void()> wake = {};  // any thread may call it: there may be something to do
};

// Written by the engine thread, read by any.
struct SchedulerCounters {
  std::atomic<int64_t> steps{0};
  std::atomic<int64_t> running{0};
  std::atomic<int64_t> available_pages{0};
  std::atomic<int64_t> cached_pages{0};
  std::atomic<int64_t> evicted_pages{0};
  std::atomic<int64_t> checkpoints{0};
  std::atomic<int64_t> prefix_hits{0};
  std::atomic<int64_t> cached_tokens{0};
  std::atomic<int64_t> preemptions{0};
};

class Scheduler {
 public:
  // Errors: kOutOfMemory.
  static Result<std::unique_ptr<Scheduler>> Create(std::unique_ptr<StepModel> model,
                                                   const SchedulerOptions& options);

  // Takes the session when there is a place and pages for it, or can be: a session of lower
  // priority gives way, and for pages one whose reader is behind. Else leaves it and returns false.
  bool Admit(std::unique_ptr<Session>& session);
  // Runs one step. False when no session can run now: none, or they wait for readers or the disk.
  bool Step();
  // Gives back what sessions hold that ended or were cancelled, then ends their streams.
  void RetireEnded();
  void CancelAll();
  // The end: what has to go to the disk goes there. Waits for it.
  void FlushDisk();
  // Those that gave way, to be admitted again.
  bool has_preempted() const { return !preempted_.empty(); }
  std::vector<std::unique_ptr<Session>> TakePreempted() { return std::exchange(preempted_, {}); }

  const SchedulerCounters& counters() const { return counters_; }  // any thread
  const DiskCache* disk() const { return disk_.get(); }            // any thread; null: none
  int64_t total_pages() const { return cache_->num_pages(); }
  int64_t kv_bytes_per_token() const { return cache_->bytes_per_page() / kPageTokens; }

 private:
  Scheduler(std::unique_ptr<StepModel> model, const SchedulerOptions& options,
            std::unique_ptr<KvCache> cache, PrefixCache prefix, Buffer logits, Buffer hidden);
  SessionCaches caches() {
    return {*cache_, prefix_, fingerprint_, checkpoints_, disk_.get(), saver_.get()};
  }
  Status OpenDisk();
  // Sessions whose pages came from the disk go on; those whose did not start again.
  void FinishLoads();
  // Every session that decodes in this step gets the page it needs, or gives way.
  void GrowPages();
  void SharePrefill();
  void BuildPlan();
  void AcceptLogits();
  // Index of the session that gives way first.
  size_t LastServed() const;
  void Preempt(size_t index);
  // To be admitted again.
  void SetBack(size_t index);
  void Retire(size_t index, FinishReason reason);
  void UpdateCounters();

  std::unique_ptr<StepModel> model_;
  SchedulerOptions options_;
  std::unique_ptr<KvCache> cache_;
  PrefixCache prefix_;
  std::string fingerprint_;
  CheckpointRule checkpoints_;
  std::unique_ptr<DiskCache> disk_;  // null: none; likewise the saver
  std::unique_ptr<DiskSaver> saver_;
  SamplerScratch sampler_scratch_;
  Buffer logits_;                                    // [max_sequences, V]
  Buffer hidden_;                                    // [prefill_chunk, E]; without embeddings none
  std::vector<std::unique_ptr<Session>> running_;    // in the order of Session::Before
  std::vector<std::unique_ptr<Session>> preempted_;  // likewise
  // Reused by every step: a steady state allocates nothing.
  struct Share {
    Session* session;
    int64_t wanted;
    int64_t given;
  };
  StepPlan plan_;
  std::vector<int32_t> hidden_tokens_;  // of plan_, in the order of hidden_
  std::vector<Session*> scheduled_;     // the session of each plan_.sequences
  MaskAhead masks_;                     // of those that get logits
  std::vector<Share> shares_;           // of this step's chunk of prefill
  SchedulerCounters counters_;
};

}  // namespace tq

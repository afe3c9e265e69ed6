// Scheduler: the running sessions and the steps that serve them. Each step mixes one id of every
// decoding session with up to prefill_chunk prompt ids of the sessions in prefill, oldest first.
// A session's pages are reserved for its longest run at admission, so a running one never fails for
// want of memory. Thread: engine, but for the counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/step_plan.h"
#include "cache/kv_cache.h"
#include "engine/session.h"
#include "engine/step_model.h"

namespace tq {

struct SchedulerOptions {
  int64_t num_pages = 0;
  int max_sequences = 0;
  int64_t prefill_chunk = 0;
  KvType kv_type = KvType::kF16;
};

class Scheduler {
 public:
  // Errors: kOutOfMemory.
  static Result<std::unique_ptr<Scheduler>> Create(std::unique_ptr<StepModel> model,
                                                   const SchedulerOptions& options);

  // Takes the session when a place and its pages are free; else leaves it and returns false.
  bool Admit(std::unique_ptr<Session>& session);
  // Runs one step. False when no session can run now: none, or the streams of all are full.
  bool Step();
  // Frees the pages of sessions that ended or were cancelled, then ends their streams.
  void RetireEnded();
  void CancelAll();

  // Any thread.
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  int64_t num_running() const { return num_running_.load(std::memory_order_relaxed); }
  int64_t free_pages() const { return free_pages_.load(std::memory_order_relaxed); }
  int64_t total_pages() const { return cache_.num_pages(); }
  int64_t kv_bytes_per_token() const { return cache_.bytes_per_page() / kPageTokens; }

 private:
  Scheduler(std::unique_ptr<StepModel> model, const SchedulerOptions& options, KvCache cache,
            Buffer logits);
  void BuildPlan();
  void AcceptLogits();
  void Retire(size_t index, FinishReason reason);
  void UpdateCounters();

  std::unique_ptr<StepModel> model_;
  SchedulerOptions options_;
  KvCache cache_;
  Buffer logits_;                                  // [max_sequences, V]
  std::vector<std::unique_ptr<Session>> running_;  // oldest first
  // Reused by every step: a steady state allocates nothing.
  StepPlan plan_;
  std::vector<Session*> scheduled_;  // the session of each plan_.sequences
  std::atomic<int64_t> steps_{0};
  std::atomic<int64_t> num_running_{0};
  std::atomic<int64_t> free_pages_{0};
};

}  // namespace tq

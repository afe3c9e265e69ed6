#include "engine/scheduler.h"

#include <algorithm>

namespace tq {

Result<std::unique_ptr<Scheduler>> Scheduler::Create(std::unique_ptr<StepModel> model,
                                                     const SchedulerOptions& options) {
  TQ_ASSIGN_OR_RETURN(KvCache cache,
                      KvCache::Create(model->Needs(options.kv_type), options.num_pages,
                                      options.max_sequences));
  const int64_t logits_bytes =
      options.max_sequences * model->vocab_size() * static_cast<int64_t>(sizeof(float));
  TQ_ASSIGN_OR_RETURN(Buffer logits, Buffer::Allocate(static_cast<size_t>(logits_bytes)));
  return std::unique_ptr<Scheduler>(
      new Scheduler(std::move(model), options, std::move(cache), std::move(logits)));
}

Scheduler::Scheduler(std::unique_ptr<StepModel> model, const SchedulerOptions& options,
                     KvCache cache, Buffer logits)
    : model_(std::move(model)),
      options_(options),
      cache_(std::move(cache)),
      logits_(std::move(logits)) {
  const auto max_sequences = static_cast<size_t>(options_.max_sequences);
  const size_t max_tokens = max_sequences + static_cast<size_t>(options_.prefill_chunk);
  running_.reserve(max_sequences);
  scheduled_.reserve(max_sequences);
  plan_.sequences.reserve(max_sequences);
  plan_.logits_tokens.reserve(max_sequences);
  plan_.ids.reserve(max_tokens);
  plan_.positions.reserve(max_tokens);
  UpdateCounters();
}

bool Scheduler::Admit(std::unique_ptr<Session>& session) {
  if (running_.size() == static_cast<size_t>(options_.max_sequences)) return false;
  if (!session->Reserve(cache_)) return false;
  running_.push_back(std::move(session));
  UpdateCounters();
  return true;
}

bool Scheduler::Step() {
  BuildPlan();
  if (scheduled_.empty()) return false;
  model_->Forward(plan_, cache_, reinterpret_cast<float*>(logits_.data()));
  steps_.fetch_add(1, std::memory_order_relaxed);
  AcceptLogits();
  RetireEnded();
  return true;
}

void Scheduler::BuildPlan() {
  plan_.ids.clear();
  plan_.positions.clear();
  plan_.sequences.clear();
  plan_.logits_tokens.clear();
  scheduled_.clear();
  int64_t prefill_left = options_.prefill_chunk;
  for (const std::unique_ptr<Session>& session : running_) {
    int64_t num_tokens = 0;
    if (session->in_prefill()) {
      num_tokens = std::min(session->num_pending(), prefill_left);
      prefill_left -= num_tokens;
    } else if (!session->stream().full()) {
      num_tokens = session->num_pending();
    }
    if (num_tokens == 0) continue;
    session->BeginStep(num_tokens, plan_);
    scheduled_.push_back(session.get());
  }
}

void Scheduler::AcceptLogits() {
  const auto vocab_size = static_cast<size_t>(model_->vocab_size());
  float* row = reinterpret_cast<float*>(logits_.data());
  for (size_t i = 0; i < scheduled_.size(); ++i) {
    if (!scheduled_[i]->EndStep(plan_.sequences[i])) continue;
    scheduled_[i]->Accept({row, vocab_size});
    row += vocab_size;
  }
}

void Scheduler::RetireEnded() {
  for (size_t i = 0; i < running_.size();) {
    const FinishReason reason = running_[i]->end_reason();
    if (reason == FinishReason::kNone) {
      ++i;
    } else {
      Retire(i, reason);
    }
  }
}

void Scheduler::CancelAll() {
  while (!running_.empty()) Retire(running_.size() - 1, FinishReason::kCancelled);
}

void Scheduler::Retire(size_t index, FinishReason reason) {
  const std::unique_ptr<Session> session = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<ptrdiff_t>(index));
  session->ReleasePages(cache_);
  // Before the stream ends: a reader that saw the end finds the pages free.
  UpdateCounters();
  session->Finish(reason);
}

void Scheduler::UpdateCounters() {
  num_running_.store(static_cast<int64_t>(running_.size()), std::memory_order_relaxed);
  free_pages_.store(cache_.free_pages(), std::memory_order_relaxed);
}

}  // namespace tq

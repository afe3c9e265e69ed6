#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tq {

// As many again as running sequences need, for what the prefix cache keeps; one for a copy.
int64_t NumExactPages(const std::vector<CacheNeeds>& needs, int max_sequences) {
  return 2 * KvCache::ExactPages(needs) * max_sequences + 1;
}

Result<std::unique_ptr<Scheduler>> Scheduler::Create(std::unique_ptr<StepModel> model,
                                                     const SchedulerOptions& options) {
  const std::vector<CacheNeeds> needs = model->Needs(options.kv);
  TQ_ASSIGN_OR_RETURN(KvCache kv, KvCache::Create(needs, options.num_pages,
                                                  options.max_sequences + options.state_checkpoints,
                                                  NumExactPages(needs, options.max_sequences)));
  auto cache = std::make_unique<KvCache>(std::move(kv));
  TQ_ASSIGN_OR_RETURN(PrefixCache prefix,
                      PrefixCache::Create(*cache, {.enabled = options.prefix_cache,
                                                   .max_checkpoints = options.state_checkpoints}));
  const int64_t logits_bytes =
      options.max_sequences * model->vocab_size() * static_cast<int64_t>(sizeof(float));
  TQ_ASSIGN_OR_RETURN(Buffer logits, Buffer::Allocate(static_cast<size_t>(logits_bytes)));
  Buffer hidden;
  if (options.embeddings) {
    // What is pooled is prefilled.
    const int64_t hidden_bytes =
        options.prefill_chunk * model->hidden_size() * static_cast<int64_t>(sizeof(float));
    TQ_ASSIGN_OR_RETURN(hidden, Buffer::Allocate(static_cast<size_t>(hidden_bytes)));
  }
  std::unique_ptr<Scheduler> scheduler(new Scheduler(std::move(model), options, std::move(cache),
                                                     std::move(prefix), std::move(logits),
                                                     std::move(hidden)));
  TQ_RETURN_IF_ERROR(scheduler->OpenDisk());
  return scheduler;
}

Scheduler::Scheduler(std::unique_ptr<StepModel> model, const SchedulerOptions& options,
                     std::unique_ptr<KvCache> cache, PrefixCache prefix, Buffer logits,
                     Buffer hidden)
    : model_(std::move(model)),
      options_(options),
      cache_(std::move(cache)),
      prefix_(std::move(prefix)),
      fingerprint_(model_->Fingerprint(options.kv)),
      logits_(std::move(logits)),
      hidden_(std::move(hidden)),
      masks_(static_cast<size_t>(options.max_sequences)) {
  if (prefix_.enabled() && cache_->has_state()) {
    checkpoints_.interval = KvCache::PagesFor(options_.prefill_chunk) * kPageTokens;
    checkpoints_.max_count = options_.state_checkpoints;
  }
  const auto max_sequences = static_cast<size_t>(options_.max_sequences);
  const size_t max_tokens = max_sequences + static_cast<size_t>(options_.prefill_chunk);
  running_.reserve(max_sequences);
  scheduled_.reserve(max_sequences);
  shares_.reserve(max_sequences);
  plan_.sequences.reserve(max_sequences);
  plan_.logits_tokens.reserve(max_sequences);
  plan_.ids.reserve(max_tokens);
  if (options_.embeddings) hidden_tokens_.reserve(static_cast<size_t>(options_.prefill_chunk));
  plan_.positions.reserve(max_tokens);
  sampler_scratch_.Reserve(static_cast<size_t>(model_->vocab_size()),
                           static_cast<size_t>(options_.num_pages * kPageTokens));
  UpdateCounters();
}

Status Scheduler::OpenDisk() {
  // Without recurrent layers' checkpoints nothing can be taken up, from wherever.
  if (options_.disk_cache.folder.empty() || !prefix_.enabled()) return Status::Ok();
  TQ_ASSIGN_OR_RETURN(disk_,
                      DiskCache::Open(options_.disk_cache, fingerprint_, *cache_, options_.wake));
  saver_ = std::make_unique<DiskSaver>(*disk_, prefix_.tree(), *cache_);
  if (options_.disk_cache.prefill_checkpoints && cache_->has_state()) {
    checkpoints_.disk_interval = KvCache::PagesFor(options_.disk_cache.save_every) * kPageTokens;
  }
  return Status::Ok();
}

void Scheduler::FinishLoads() {
  for (size_t i = 0; i < running_.size();) {
    Session& session = *running_[i];
    if (!session.loading() || !session.load_done() || session.EndLoad(caches())) {
      ++i;
    } else {
      SetBack(i);
    }
  }
}

void Scheduler::FlushDisk() {
  if (saver_ != nullptr) saver_->Flush();
}

bool Scheduler::Admit(std::unique_ptr<Session>& session) {
  while (true) {
    const bool has_place = running_.size() < static_cast<size_t>(options_.max_sequences);
    // A page for each that runs, so that the new one is not sent away at once.
    const auto spare_pages = static_cast<int64_t>(running_.size());
    if (has_place && session->Start(caches(), spare_pages)) break;
    TQ_CHECK(!running_.empty());
    const size_t last = LastServed();
    const Session& other = *running_[last];
    const bool lower = other.priority() < session->priority();
    // Pages are not kept for a reader that is behind.
    const bool idle = has_place && other.paused() && other.priority() == session->priority();
    if (!lower && !idle) return false;
    Preempt(last);
  }
  const auto place = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& other) { return session->Before(*other); });
  running_.insert(place, std::move(session));
  UpdateCounters();
  return true;
}

bool Scheduler::Step() {
  if (disk_ != nullptr) {
    FinishLoads();
    saver_->Pump();
  }
  GrowPages();
  SharePrefill();
  BuildPlan();
  if (scheduled_.empty()) return false;
  masks_.Start();
  auto* logits = reinterpret_cast<float*>(logits_.data());
  if (hidden_tokens_.empty()) {
    model_->Forward(plan_, *cache_, logits);
  } else {
    model_->ForwardHidden(plan_, *cache_, logits,
                          {hidden_tokens_, reinterpret_cast<float*>(hidden_.data())});
  }
  counters_.steps.fetch_add(1, std::memory_order_relaxed);
  masks_.Wait();
  AcceptLogits();
  RetireEnded();
  return true;
}

void Scheduler::GrowPages() {
  for (size_t i = 0; i < running_.size();) {
    Session* session = running_[i].get();
    if (session->in_prefill() || session->paused() || session->Grow(prefix_)) {
      ++i;
      continue;
    }
    const size_t last = LastServed();
    // Whoever is served before it keeps its place in the order.
    if (last < i) --i;
    Preempt(last);
  }
}

// Half of the chunk is for the session that is served first, the other half for those that need
// least; what one leaves goes to the next. So the first is never held up by more than half, and a
// short prompt never waits for a long one to end.
void Scheduler::SharePrefill() {
  shares_.clear();
  for (const std::unique_ptr<Session>& session : running_) {
    if (!session->in_prefill() || session->loading()) continue;
    session->TakeUp(caches());
    const bool waits =
        prefix_.enabled() && std::any_of(shares_.begin(), shares_.end(), [&](const Share& share) {
          return session->CanWaitFor(*share.session, checkpoints_);
        });
    if (waits) continue;
    shares_.push_back(
        {session.get(), session->ChunkTokens(options_.prefill_chunk, checkpoints_), 0});
  }
  if (shares_.empty()) return;
  int64_t left = options_.prefill_chunk;
  const auto give = [&left](Share& share, int64_t most) {
    const int64_t more = std::min({share.wanted - share.given, most, left});
    share.given += more;
    left -= more;
  };
  Session* first = shares_.front().session;
  give(shares_.front(), (left + 1) / 2);
  std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
    if (a.session->priority() != b.session->priority()) {
      return a.session->priority() > b.session->priority();
    }
    if (a.wanted != b.wanted) return a.wanted < b.wanted;
    return a.session->Before(*b.session);
  });
  for (Share& share : shares_) {
    if (share.session != first) give(share, left);
  }
  for (Share& share : shares_) give(share, left);
}

void Scheduler::BuildPlan() {
  plan_.ids.clear();
  plan_.positions.clear();
  plan_.sequences.clear();
  plan_.logits_tokens.clear();
  hidden_tokens_.clear();
  scheduled_.clear();
  for (const std::unique_ptr<Session>& session : running_) {
    int64_t num_tokens = 0;
    if (session->in_prefill()) {
      const auto share = std::find_if(shares_.begin(), shares_.end(),
                                      [&](const Share& s) { return s.session == session.get(); });
      if (share != shares_.end()) num_tokens = share->given;
    } else if (!session->paused() && session->has_pages()) {
      num_tokens = session->num_pending();
    }
    if (num_tokens == 0) continue;
    const size_t num_logits = plan_.logits_tokens.size();
    session->BeginStep(num_tokens, plan_, hidden_tokens_);
    scheduled_.push_back(session.get());
    const bool samples = plan_.logits_tokens.size() > num_logits;
    if (samples && session->constrained()) masks_.Add(session.get());
  }
}

void Scheduler::AcceptLogits() {
  const auto vocab_size = static_cast<size_t>(model_->vocab_size());
  float* row = reinterpret_cast<float*>(logits_.data());
  const auto* hidden = reinterpret_cast<const float*>(hidden_.data());
  for (size_t i = 0; i < scheduled_.size(); ++i) {
    if (const int64_t num_hidden = scheduled_[i]->num_hidden(); num_hidden > 0) {
      const auto floats = static_cast<size_t>(num_hidden * model_->hidden_size());
      scheduled_[i]->AddHidden({hidden, floats});
      hidden += floats;
    }
    if (!scheduled_[i]->EndStep(plan_.sequences[i], caches())) continue;
    scheduled_[i]->Accept({row, vocab_size}, sampler_scratch_);
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
  UpdateCounters();
}

void Scheduler::CancelAll() {
  while (!running_.empty()) Retire(running_.size() - 1, FinishReason::kCancelled);
  for (const std::unique_ptr<Session>& session : preempted_) {
    session->Finish(FinishReason::kCancelled);
  }
  preempted_.clear();
}

// The lowest priority; among its sessions one whose reader is behind, else the youngest.
size_t Scheduler::LastServed() const {
  size_t last = running_.size() - 1;
  if (running_[last]->paused()) return last;
  for (size_t i = last; i-- > 0 && running_[i]->priority() == running_[last]->priority();) {
    if (running_[i]->paused()) return i;
  }
  return last;
}

void Scheduler::Preempt(size_t index) {
  SetBack(index);
  counters_.preemptions.fetch_add(1, std::memory_order_relaxed);
}

void Scheduler::SetBack(size_t index) {
  std::unique_ptr<Session> session = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<ptrdiff_t>(index));
  session->Stop(caches());
  preempted_.push_back(std::move(session));
}

void Scheduler::Retire(size_t index, FinishReason reason) {
  const std::unique_ptr<Session> session = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<ptrdiff_t>(index));
  session->Stop(caches());
  if (session->cached_tokens() > 0) counters_.prefix_hits.fetch_add(1, std::memory_order_relaxed);
  counters_.cached_tokens.fetch_add(session->cached_tokens(), std::memory_order_relaxed);
  // Before the stream ends: a reader that saw the end finds the pages available.
  UpdateCounters();
  session->Finish(reason);
}

void Scheduler::UpdateCounters() {
  const auto set = [](std::atomic<int64_t>& counter, int64_t value) {
    counter.store(value, std::memory_order_relaxed);
  };
  set(counters_.running, static_cast<int64_t>(running_.size()));
  set(counters_.available_pages, prefix_.available());
  set(counters_.cached_pages, prefix_.num_pages());
  set(counters_.evicted_pages, prefix_.evicted_pages());
  set(counters_.checkpoints, prefix_.num_checkpoints());
}

}  // namespace tq

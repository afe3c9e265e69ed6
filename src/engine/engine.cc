#include "engine/engine.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "engine/engine_lengths.h"
#include "engine/scheduler.h"
#include "engine/session.h"
#include "engine/wakeup.h"

namespace tq {
namespace {

// Positions are int32 and rope is exact below 2^30.
constexpr int64_t kMaxTokens = int64_t{1} << 30;

Status CheckRange(std::string_view field, int64_t low, int64_t high, int64_t found) {
  if (found >= low && found <= high) return Status::Ok();
  return InvalidArgument(
      fmt::format("{}: expected a number in [{}, {}], found {}", field, low, high, found));
}

}  // namespace

Status FillInLengths(int64_t model_context, EngineOptions& options) {
  model_context = std::min(model_context, kMaxTokens);
  if (options.max_context > model_context) {
    return InvalidArgument(
        fmt::format("max_context: expected at most the model's {} positions, found {}",
                    model_context, options.max_context));
  }
  if (options.max_context == 0) {
    options.max_context =
        options.kv_tokens == 0 ? model_context : std::min(model_context, options.kv_tokens);
  }
  if (options.kv_tokens == 0) options.kv_tokens = options.max_context;
  if (options.kv_tokens < options.max_context) {
    return InvalidArgument(
        fmt::format("kv_tokens: expected at least max_context = {}, found {}; raise kv_tokens or "
                    "lower max_context",
                    options.max_context, options.kv_tokens));
  }
  return Status::Ok();
}

Status EngineOptions::Validate() const {
  if (max_context != 0) TQ_RETURN_IF_ERROR(CheckRange("max_context", 2, kMaxTokens, max_context));
  if (kv_tokens != 0) TQ_RETURN_IF_ERROR(CheckRange("kv_tokens", 2, kMaxTokens, kv_tokens));
  TQ_RETURN_IF_ERROR(CheckRange("max_sequences", 1, 4096, max_sequences));
  TQ_RETURN_IF_ERROR(CheckRange("max_queue", 1, 1 << 20, max_queue));
  TQ_RETURN_IF_ERROR(CheckRange("prefill_chunk", 1, 1 << 16, prefill_chunk));
  TQ_RETURN_IF_ERROR(CheckRange("state_checkpoints", -1, 1 << 16, state_checkpoints));
  if (disk_cache.folder.empty()) return Status::Ok();
  TQ_RETURN_IF_ERROR(
      CheckRange("disk_cache.budget_bytes", 1, int64_t{1} << 60, disk_cache.budget_bytes));
  TQ_RETURN_IF_ERROR(CheckRange("disk_cache.min_tokens", 0, kMaxTokens, disk_cache.min_tokens));
  return CheckRange("disk_cache.save_every", 1, kMaxTokens, disk_cache.save_every);
}

struct Engine::Impl {
  std::unique_ptr<Scheduler> scheduler;
  int64_t vocab_size = 0;
  std::shared_ptr<Wakeup> wakeup = std::make_shared<Wakeup>();
  std::mutex mutex;                              // guards the next four
  std::deque<std::unique_ptr<Session>> waiting;  // in the order of Session::Before
  bool admitting = false;                        // one more, in the hands of the engine thread
  int64_t num_submitted = 0;
  bool stop = false;
  std::thread thread;

  void Run();
  // Between two steps. False when the engine stops.
  bool AdmitWaiting();
  void CancelAll();
  // These require the lock.
  // The first that can run, out of the queue; null: none.
  std::unique_ptr<Session> TakeNext();
  void Enqueue(std::unique_ptr<Session> session);
  void EndCancelled();
  int64_t num_waiting() const { return static_cast<int64_t>(waiting.size()) + admitting; }
};

void Engine::Impl::Run() {
  while (AdmitWaiting()) {
    if (!scheduler->Step() && !scheduler->has_preempted()) wakeup->Wait();
  }
  CancelAll();
  scheduler->FlushDisk();
}

void Engine::Impl::Enqueue(std::unique_ptr<Session> session) {
  auto place = waiting.end();
  while (place != waiting.begin() && session->Before(**std::prev(place))) --place;
  waiting.insert(place, std::move(session));
}

void Engine::Impl::EndCancelled() {
  std::erase_if(waiting, [](const std::unique_ptr<Session>& session) {
    const FinishReason reason = session->end_reason();
    if (reason == FinishReason::kNone) return false;
    session->Finish(reason);
    return true;
  });
}

std::unique_ptr<Session> Engine::Impl::TakeNext() {
  const auto next = std::find_if(waiting.begin(), waiting.end(),
                                 [](const auto& session) { return !session->paused(); });
  if (next == waiting.end()) return nullptr;
  std::unique_ptr<Session> session = std::move(*next);
  waiting.erase(next);
  admitting = true;
  return session;
}

bool Engine::Impl::AdmitWaiting() {
  scheduler->RetireEnded();
  std::unique_ptr<Session> refused;
  while (true) {
    std::unique_ptr<Session> session;
    {
      const std::lock_guard lock(mutex);
      admitting = false;
      for (std::unique_ptr<Session>& preempted : scheduler->TakePreempted()) {
        Enqueue(std::move(preempted));
      }
      const bool full = refused != nullptr;
      if (full) Enqueue(std::move(refused));
      if (stop) return false;
      EndCancelled();
      if (full) return true;
      session = TakeNext();
    }
    if (session == nullptr) return true;
    // Not under the lock: it may copy pages and states.
    if (!scheduler->Admit(session)) refused = std::move(session);
  }
}

void Engine::Impl::CancelAll() {
  scheduler->CancelAll();
  const std::lock_guard lock(mutex);
  for (const std::unique_ptr<Session>& session : waiting) {
    session->Finish(FinishReason::kCancelled);
  }
  waiting.clear();
}

Result<std::unique_ptr<Engine>> Engine::Create(std::unique_ptr<StepModel> model,
                                               EngineOptions options) {
  TQ_RETURN_IF_ERROR(options.Validate());
  TQ_RETURN_IF_ERROR(FillInLengths(model->max_position_embeddings(), options));
  auto impl = std::make_unique<Impl>();
  impl->vocab_size = model->vocab_size();
  options.embeddings = options.embeddings && model->hidden_size() > 0;
  const bool has_state = KvCache::BytesPerSlot(model->Needs(options.kv)) > 0;
  if (!has_state || !options.prefix_cache) options.state_checkpoints = 0;
  if (options.state_checkpoints < 0) options.state_checkpoints = options.default_checkpoints();
  TQ_ASSIGN_OR_RETURN(
      impl->scheduler,
      Scheduler::Create(std::move(model), {.num_pages = KvCache::PagesFor(options.kv_tokens),
                                           .max_sequences = options.max_sequences,
                                           .prefill_chunk = options.prefill_chunk,
                                           .kv = options.kv,
                                           .prefix_cache = options.prefix_cache,
                                           .state_checkpoints = options.state_checkpoints,
                                           .embeddings = options.embeddings,
                                           .disk_cache = options.disk_cache,
                                           .wake = [wakeup = impl->wakeup] { wakeup->Notify(); }}));
  return std::unique_ptr<Engine>(new Engine(options, std::move(impl)));
}

Engine::Engine(const EngineOptions& options, std::unique_ptr<Impl> impl)
    : options_(options), impl_(std::move(impl)) {
  impl_->thread = std::thread([state = impl_.get()] { state->Run(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wakeup->Notify();
  impl_->thread.join();
}

Result<std::shared_ptr<TokenStream>> Engine::Submit(GenerateRequest request) {
  TQ_RETURN_IF_ERROR(request.Validate(impl_->vocab_size, options_.max_context));
  if (request.pooling && !options_.embeddings) {
    return Unsupported("embeddings: expected an engine that gives them, found one that does not");
  }
  const auto stream = std::make_shared<TokenStream>(impl_->wakeup, request.num_logprobs >= 0);
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->num_waiting() >= options_.max_queue) {
      return Busy(
          fmt::format("queue: expected fewer than {} waiting requests, found {}; try again "
                      "later",
                      options_.max_queue, impl_->num_waiting()));
    }
    impl_->Enqueue(std::make_unique<Session>(std::move(request), impl_->num_submitted++,
                                             impl_->vocab_size, options_.max_context, stream));
  }
  impl_->wakeup->Notify();
  // The reader's own count: letting go of it cancels, whoever else holds the stream.
  return std::shared_ptr<TokenStream>(stream.get(),
                                      [stream](TokenStream* reader) { reader->Cancel(); });
}

EngineStats Engine::stats() const {
  const SchedulerCounters& counters = impl_->scheduler->counters();
  const auto read = [](const std::atomic<int64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  EngineStats stats;
  stats.steps = read(counters.steps);
  stats.running = read(counters.running);
  stats.free_pages = read(counters.available_pages);
  stats.total_pages = impl_->scheduler->total_pages();
  stats.kv_bytes_per_token = impl_->scheduler->kv_bytes_per_token();
  stats.cached_pages = read(counters.cached_pages);
  stats.checkpoints = read(counters.checkpoints);
  stats.prefix_hits = read(counters.prefix_hits);
  stats.cached_tokens = read(counters.cached_tokens);
  stats.evicted_pages = read(counters.evicted_pages);
  stats.preemptions = read(counters.preemptions);
  if (const DiskCache* disk = impl_->scheduler->disk()) {
    stats.disk_hits = read(disk->counters().hits);
    stats.disk_loaded_tokens = read(disk->counters().loaded_tokens);
    stats.disk_bytes = disk->bytes_on_disk();
    stats.disk_written_files = read(disk->counters().written_files);
    stats.disk_write_errors = read(disk->counters().write_errors);
    stats.disk_dropped_files = disk->dropped_files();
  }
  const std::lock_guard lock(impl_->mutex);
  stats.waiting = impl_->num_waiting();
  return stats;
}

Status Engine::disk_error() const {
  const DiskCache* disk = impl_->scheduler->disk();
  return disk == nullptr ? Status::Ok() : disk->last_error();
}

}  // namespace tq

#include "engine/engine.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

#include <fmt/format.h>

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

// Replaces the zeros of max_context and kv_tokens.
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

}  // namespace

Status EngineOptions::Validate() const {
  if (max_context != 0) TQ_RETURN_IF_ERROR(CheckRange("max_context", 2, kMaxTokens, max_context));
  if (kv_tokens != 0) TQ_RETURN_IF_ERROR(CheckRange("kv_tokens", 2, kMaxTokens, kv_tokens));
  TQ_RETURN_IF_ERROR(CheckRange("max_sequences", 1, 4096, max_sequences));
  TQ_RETURN_IF_ERROR(CheckRange("max_queue", 1, 1 << 20, max_queue));
  return CheckRange("prefill_chunk", 1, 1 << 16, prefill_chunk);
}

struct Engine::Impl {
  std::unique_ptr<Scheduler> scheduler;
  int64_t vocab_size = 0;
  std::shared_ptr<Wakeup> wakeup = std::make_shared<Wakeup>();
  std::mutex mutex;                              // guards waiting and stop
  std::deque<std::unique_ptr<Session>> waiting;  // oldest first
  bool stop = false;
  std::thread thread;

  void Run();
  // Between two steps. False when the engine stops.
  bool AdmitWaiting();
  void CancelAll();
};

void Engine::Impl::Run() {
  while (AdmitWaiting()) {
    if (!scheduler->Step()) wakeup->Wait();
  }
  CancelAll();
}

bool Engine::Impl::AdmitWaiting() {
  scheduler->RetireEnded();
  const std::lock_guard lock(mutex);
  if (stop) return false;
  std::erase_if(waiting, [](const std::unique_ptr<Session>& session) {
    const FinishReason reason = session->end_reason();
    if (reason == FinishReason::kNone) return false;
    session->Finish(reason);
    return true;
  });
  while (!waiting.empty() && scheduler->Admit(waiting.front())) waiting.pop_front();
  return true;
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
  TQ_ASSIGN_OR_RETURN(
      impl->scheduler,
      Scheduler::Create(std::move(model), {.num_pages = KvCache::PagesFor(options.kv_tokens),
                                           .max_sequences = options.max_sequences,
                                           .prefill_chunk = options.prefill_chunk,
                                           .kv_type = options.kv_type}));
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
  const auto stream = std::make_shared<TokenStream>(impl_->wakeup);
  auto session = std::make_unique<Session>(std::move(request), impl_->vocab_size,
                                           options_.max_context, stream);
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->waiting.size() >= static_cast<size_t>(options_.max_queue)) {
      return Busy(
          fmt::format("queue: expected fewer than {} waiting requests, found {}; try again "
                      "later",
                      options_.max_queue, impl_->waiting.size()));
    }
    impl_->waiting.push_back(std::move(session));
  }
  impl_->wakeup->Notify();
  // The reader's own count: letting go of it cancels, whoever else holds the stream.
  return std::shared_ptr<TokenStream>(stream.get(),
                                      [stream](TokenStream* reader) { reader->Cancel(); });
}

EngineStats Engine::stats() const {
  EngineStats stats;
  stats.steps = impl_->scheduler->steps();
  stats.running = impl_->scheduler->num_running();
  stats.free_pages = impl_->scheduler->free_pages();
  stats.total_pages = impl_->scheduler->total_pages();
  stats.kv_bytes_per_token = impl_->scheduler->kv_bytes_per_token();
  const std::lock_guard lock(impl_->mutex);
  stats.waiting = static_cast<int64_t>(impl_->waiting.size());
  return stats;
}

}  // namespace tq

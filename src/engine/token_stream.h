// TokenStream: carries one request's ids from the engine thread to its reader. Bounded: when it is
// full the engine pauses that sequence only. Cancellable from the reader's side at any time; a
// reader that lets go of the pointer that Engine::Submit gave it cancels too.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/status.h"
#include "engine/request.h"
#include "engine/wakeup.h"

namespace tq {

class TokenStream {
 public:
  static constexpr size_t kCapacity = 1024;

  // wakeup: notified when the reader cancels or makes room.
  // with_logprobs: every id comes with its TokenLogprobs.
  explicit TokenStream(std::shared_ptr<Wakeup> wakeup, bool with_logprobs = false)
      : wakeup_(std::move(wakeup)), logprobs_(with_logprobs ? kCapacity : 0) {}

  // Reader side. Next blocks for the next id; nullopt at the end (then finish_reason() and stats()
  // are final). Ids that were pushed before the end are still delivered, also after Cancel.
  // logprobs, when not null, gets those of the id; left alone in a stream without.
  std::optional<int32_t> Next(TokenLogprobs* logprobs = nullptr);
  // For a reader that must not block: the next id, if there is one now.
  std::optional<int32_t> TryNext(TokenLogprobs* logprobs = nullptr);
  // Nothing is left to read, and nothing will come.
  bool at_end() const;
  // Called, on the engine's thread or at once on this one, when there is something to read or the
  // end came, and again only after TryNext found nothing. It must be quick and not use the stream.
  void SetListener(std::function<void()> listener);
  void Cancel();
  FinishReason finish_reason() const;
  Status status() const;  // why, when finish_reason() is kError
  GenerateStats stats() const;
  // Of a request with pooling, at the end with kStop; else empty.
  std::vector<float> embedding() const;

  // Engine side. Push requires: not full, not finished. The first Finish counts.
  bool full() const;
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void Push(int32_t id, const TokenLogprobs& logprobs = {});
  void Finish(FinishReason reason, Status status, const GenerateStats& stats,
              std::vector<float> embedding = {});

 private:
  // These require the lock.
  int32_t TakeFirst(TokenLogprobs* logprobs);
  void CallListener();

  std::shared_ptr<Wakeup> wakeup_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::array<int32_t, kCapacity> ids_;   // a ring: a push allocates nothing
  std::vector<TokenLogprobs> logprobs_;  // of ids_, or empty
  size_t first_ = 0;
  size_t size_ = 0;
  bool finished_ = false;
  bool listener_waits_ = false;
  std::function<void()> listener_;
  FinishReason reason_ = FinishReason::kNone;
  Status status_;
  GenerateStats stats_;
  std::vector<float> embedding_;
};

}  // namespace tq

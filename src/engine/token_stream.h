// TokenStream: carries one request's ids from the engine thread to its reader. Bounded: when it is
// full the engine pauses that sequence only. Cancellable from the reader's side at any time; a
// reader that lets go of the pointer that Engine::Submit gave it cancels too.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/status.h"
#include "engine/request.h"
#include "engine/wakeup.h"

namespace tq {

class TokenStream {
 public:
  static constexpr size_t kCapacity = 1024;

  // wakeup: notified when the reader cancels or makes room.
  explicit TokenStream(std::shared_ptr<Wakeup> wakeup) : wakeup_(std::move(wakeup)) {}

  // Reader side. Next blocks for the next id; nullopt at the end (then finish_reason() and stats()
  // are final). Ids that were pushed before the end are still delivered, also after Cancel.
  std::optional<int32_t> Next();
  void Cancel();
  FinishReason finish_reason() const;
  Status status() const;  // why, when finish_reason() is kError
  GenerateStats stats() const;

  // Engine side. Push requires: not full, not finished. The first Finish counts.
  bool full() const;
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void Push(int32_t id);
  void Finish(FinishReason reason, Status status, const GenerateStats& stats);

 private:
  std::shared_ptr<Wakeup> wakeup_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::array<int32_t, kCapacity> ids_;  // a ring: a push allocates nothing
  size_t first_ = 0;
  size_t size_ = 0;
  bool finished_ = false;
  FinishReason reason_ = FinishReason::kNone;
  Status status_;
  GenerateStats stats_;
};

}  // namespace tq

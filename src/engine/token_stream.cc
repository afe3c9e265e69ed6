#include "engine/token_stream.h"

#include "base/check.h"

namespace tq {

std::optional<int32_t> TokenStream::Next() {
  int32_t id = 0;
  bool was_full = false;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return size_ > 0 || finished_; });
    if (size_ == 0) return std::nullopt;
    was_full = size_ == kCapacity && !finished_;
    id = ids_[first_];
    first_ = (first_ + 1) % kCapacity;
    --size_;
  }
  if (was_full) wakeup_->Notify();
  return id;
}

void TokenStream::Cancel() {
  if (!cancelled_.exchange(true)) wakeup_->Notify();
}

FinishReason TokenStream::finish_reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

Status TokenStream::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

GenerateStats TokenStream::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

bool TokenStream::full() const {
  const std::lock_guard lock(mutex_);
  return size_ == kCapacity;
}

void TokenStream::Push(int32_t id) {
  {
    const std::lock_guard lock(mutex_);
    TQ_CHECK(size_ < kCapacity && !finished_);
    ids_[(first_ + size_) % kCapacity] = id;
    ++size_;
  }
  changed_.notify_one();
}

void TokenStream::Finish(FinishReason reason, Status status, const GenerateStats& stats) {
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
    reason_ = reason;
    status_ = std::move(status);
    stats_ = stats;
  }
  changed_.notify_all();
}

}  // namespace tq

#include "engine/token_stream.h"

#include <utility>

#include "base/check.h"

namespace tq {

std::optional<int32_t> TokenStream::Next(TokenLogprobs* logprobs) {
  int32_t id = 0;
  bool was_full = false;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return size_ > 0 || finished_; });
    if (size_ == 0) return std::nullopt;
    was_full = size_ == kCapacity && !finished_;
    id = TakeFirst(logprobs);
  }
  if (was_full) wakeup_->Notify();
  return id;
}

std::optional<int32_t> TokenStream::TryNext(TokenLogprobs* logprobs) {
  int32_t id = 0;
  bool was_full = false;
  {
    const std::lock_guard lock(mutex_);
    if (size_ == 0) {
      listener_waits_ = !finished_;
      return std::nullopt;
    }
    was_full = size_ == kCapacity && !finished_;
    id = TakeFirst(logprobs);
  }
  if (was_full) wakeup_->Notify();
  return id;
}

int32_t TokenStream::TakeFirst(TokenLogprobs* logprobs) {
  const int32_t id = ids_[first_];
  if (logprobs != nullptr && !logprobs_.empty()) *logprobs = logprobs_[first_];
  first_ = (first_ + 1) % kCapacity;
  --size_;
  return id;
}

bool TokenStream::at_end() const {
  const std::lock_guard lock(mutex_);
  return finished_ && size_ == 0;
}

void TokenStream::SetListener(std::function<void()> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
  listener_waits_ = true;
  if (size_ > 0 || finished_) CallListener();
}

void TokenStream::CallListener() {
  if (!listener_waits_ || !listener_) return;
  listener_waits_ = false;
  listener_();
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

void TokenStream::Push(int32_t id, const TokenLogprobs& logprobs) {
  {
    const std::lock_guard lock(mutex_);
    TQ_CHECK(size_ < kCapacity && !finished_);
    const size_t place = (first_ + size_) % kCapacity;
    ids_[place] = id;
    if (!logprobs_.empty()) logprobs_[place] = logprobs;
    ++size_;
    CallListener();
  }
  changed_.notify_one();
}

std::vector<float> TokenStream::embedding() const {
  const std::lock_guard lock(mutex_);
  return embedding_;
}

void TokenStream::Finish(FinishReason reason, Status status, const GenerateStats& stats,
                         std::vector<float> embedding) {
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
    reason_ = reason;
    status_ = std::move(status);
    stats_ = stats;
    embedding_ = std::move(embedding);
    CallListener();
  }
  changed_.notify_all();
}

}  // namespace tq

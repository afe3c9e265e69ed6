// Wakeup: tells the engine thread that there may be something to do. Shared with every stream, so
// that a reader may outlive the engine. Thread: Notify any, Wait the engine.
#pragma once

#include <condition_variable>
#include <mutex>

namespace tq {

class Wakeup {
 public:
  void Notify() {
    {
      const std::lock_guard lock(mutex_);
      pending_ = true;
    }
    changed_.notify_one();
  }
  // Returns at once when somebody notified since the last Wait.
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pending_; });
    pending_ = false;
  }

 private:
  std::mutex mutex_;  // guards pending_
  std::condition_variable changed_;
  bool pending_ = false;
};

}  // namespace tq

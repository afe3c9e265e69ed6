// Bell: brings a call of the engine or of the pool to the exchange, as long as somebody waits
// there. What their threads hold on to is this alone, so that nothing else ever ends on them.
// Thread: any.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "server/transport/http.h"

namespace tq::server {

class Bell {
 public:
  // answer: called on the exchange's thread.
  Bell(Exchange* exchange, std::function<void()> answer)
      : exchange_(exchange), answer_(std::move(answer)) {}
  void Ring() {
    const std::lock_guard lock(mutex_);
    if (exchange_ != nullptr) exchange_->Post(answer_);
  }
  void Silence() {
    const std::lock_guard lock(mutex_);
    exchange_ = nullptr;
  }

 private:
  std::mutex mutex_;  // guards exchange_
  Exchange* exchange_;
  const std::function<void()> answer_;
};

}  // namespace tq::server

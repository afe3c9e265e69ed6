#include "engine/mask_ahead.h"

namespace tq {

MaskAhead::~MaskAhead() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MaskAhead::Start() {
  if (sessions_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_all();
}

void MaskAhead::Wait() {
  if (sessions_.empty()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  sessions_.clear();
}

void MaskAhead::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || stop_; });
    if (stop_) return;
    lock.unlock();
    for (Session* session : sessions_) session->FillMask();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace tq

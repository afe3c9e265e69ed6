// MaskAhead: fills the masks of a step's constraints on a thread of its own, while the step's
// logits are computed. The thread starts with the first constraint. Thread: engine.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/session.h"

namespace tq {

class MaskAhead {
 public:
  explicit MaskAhead(size_t max_sessions) { sessions_.reserve(max_sessions); }
  ~MaskAhead();
  MaskAhead(const MaskAhead&) = delete;
  MaskAhead& operator=(const MaskAhead&) = delete;

  // Before Start. The session is the thread's until Wait returns.
  void Add(Session* session) { sessions_.push_back(session); }
  // Begins to fill the masks of those added.
  void Start();
  // All are filled; none is kept.
  void Wait();

 private:
  void Run();

  std::vector<Session*> sessions_;
  std::mutex mutex_;  // guards the next two
  bool busy_ = false;
  bool stop_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace tq

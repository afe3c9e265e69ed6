// Tasks of different lengths over a pool: each thread takes the next one when it is done.
// RunQueue: the same for tasks that are best done one after another by the same thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/threads.h"

namespace tq {

// body(task, thread) for every task < num_tasks.
template <typename Body>
void ForTasks(ThreadPool& pool, int64_t num_tasks, const Body& body) {
  std::atomic<int64_t> next{0};
  pool.ParallelFor(
      std::min<int64_t>(pool.num_threads(), num_tasks), 1, [&](int64_t, int64_t, int thread) {
        for (int64_t task = next.fetch_add(1); task < num_tasks; task = next.fetch_add(1)) {
          body(task, thread);
        }
      });
}

// How far one run has come. On a cache line of its own: its thread takes from it all the time.
struct alignas(64) RunCursor {
  std::atomic<int64_t> next{0};
};

// A run of tasks_per_run tasks to a thread; who has done his own helps with those of others, so
// that all end together though one thread had less of its processor.
class RunQueue {
 public:
  // cursors: one per thread, in use until all threads have found the queue empty.
  RunQueue(std::span<RunCursor> cursors, int64_t tasks_per_run)
      : cursors_(cursors), tasks_per_run_(tasks_per_run) {
    for (RunCursor& cursor : cursors_) cursor.next.store(0, std::memory_order_relaxed);
  }
  // The next task for `thread`: run * tasks_per_run + place in the run. -1: none is left.
  int64_t Next(int thread) {
    const int64_t runs = static_cast<int64_t>(cursors_.size());
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t run = (thread + i) % runs;
      std::atomic<int64_t>& next = cursors_[static_cast<size_t>(run)].next;
      if (next.load(std::memory_order_relaxed) >= tasks_per_run_) continue;
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task < tasks_per_run_) return run * tasks_per_run_ + task;
    }
    return -1;
  }

 private:
  std::span<RunCursor> cursors_;
  int64_t tasks_per_run_;
};

}  // namespace tq

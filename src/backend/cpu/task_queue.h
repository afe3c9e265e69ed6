// Tasks of different lengths over a pool: each thread takes the next one when it is done.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

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

}  // namespace tq

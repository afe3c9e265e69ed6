#include "base/task_queue.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tq {
namespace {

// Who has done which task.
std::vector<std::vector<int64_t>> RunAll(ThreadPool& pool, std::vector<RunCursor>& cursors,
                                         int64_t tasks_per_run) {
  std::vector<std::vector<int64_t>> done(static_cast<size_t>(pool.num_threads()));
  RunQueue queue(cursors, tasks_per_run);
  pool.ParallelFor(pool.num_threads(), 1, [&](int64_t, int64_t, int thread) {
    for (int64_t task = queue.Next(thread); task >= 0; task = queue.Next(thread)) {
      done[static_cast<size_t>(thread)].push_back(task);
    }
  });
  return done;
}

TEST(RunQueue, EveryTaskOnceAndRunsInOrder) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<RunCursor> cursors(static_cast<size_t>(threads));
    for (const int64_t tasks : {1, 7, 64}) {
      for (int round = 0; round < 100; ++round) {
        std::vector<int> hits(static_cast<size_t>(threads * tasks), 0);
        for (const auto& of_thread : RunAll(pool, cursors, tasks)) {
          std::vector<int64_t> last(static_cast<size_t>(threads), -1);
          for (const int64_t task : of_thread) {
            ++hits[static_cast<size_t>(task)];
            int64_t& before = last[static_cast<size_t>(task / tasks)];
            EXPECT_LT(before, task);
            before = task;
          }
        }
        for (const int hit : hits) EXPECT_EQ(hit, 1);
      }
    }
  }
}

// One thread stays with its first task until all others are done.
TEST(RunQueue, OthersHelpASlowThread) {
  constexpr int64_t kTasks = 50;
  ThreadPool pool(2);
  std::vector<RunCursor> cursors(2);
  RunQueue queue(cursors, kTasks);
  std::atomic<int64_t> done{0};
  pool.ParallelFor(2, 1, [&](int64_t, int64_t, int thread) {
    for (int64_t task = queue.Next(thread); task >= 0; task = queue.Next(thread)) {
      while (thread == 1 && done.load() < 2 * kTasks - 1) std::this_thread::yield();
      ++done;
    }
  });
  EXPECT_EQ(done.load(), 2 * kTasks);
}

}  // namespace
}  // namespace tq

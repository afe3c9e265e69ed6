#include "base/threads.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (const int64_t n : {0, 1, 7, 16, 1000}) {
      for (const int64_t grain : {1, 4, 16}) {
        std::vector<int> hits(static_cast<size_t>(n), 0);
        pool.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int thread) {
          EXPECT_LT(thread, threads);
          EXPECT_EQ(begin % grain, 0);
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), int64_t{0}), n);
        for (const int hit : hits) EXPECT_EQ(hit, 1);
      }
    }
  }
}

TEST(ThreadPool, ManyShortJobs) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(64, 0);
  for (int round = 0; round < 2000; ++round) {
    pool.ParallelFor(64, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) sums[static_cast<size_t>(i)] += i;
    });
  }
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(sums[static_cast<size_t>(i)], 2000 * i);
}

// More threads than processors: those that do not run must not be waited for before they have
// begun.
TEST(ThreadPool, ManyMoreThreadsThanProcessors) {
  ThreadPool pool(4 * AvailableCpus() + 3);
  const int n = pool.num_threads();
  std::vector<std::atomic<int>> at_once(static_cast<size_t>(n));
  std::atomic<int64_t> total{0};
  for (int round = 0; round < 500; ++round) {
    pool.ParallelFor(n, 1, [&](int64_t begin, int64_t end, int range) {
      EXPECT_EQ(at_once[static_cast<size_t>(range)].fetch_add(1), 0);
      total += end - begin;
      at_once[static_cast<size_t>(range)].fetch_sub(1);
    });
  }
  EXPECT_EQ(total.load(), int64_t{500} * n);
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int64_t> total{0};
    pool.ParallelFor(100, 1, [&](int64_t begin, int64_t end, int) { total += end - begin; });
    EXPECT_EQ(total.load(), 100);
  }
}

}  // namespace
}  // namespace tq

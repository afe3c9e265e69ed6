#include "base/threads.h"

#include <gtest/gtest.h>

#include <numeric>

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

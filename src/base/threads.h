// ThreadPool: the workers of one backend. ParallelFor splits [0, n) into contiguous ranges, one per
// thread, and returns when all are done. Results must not depend on the split: kernels see to that.
// Each thread begins with its own range; one that is not running (a busy machine, a worker that
// still wakes up) finds that another has done its range. Workers never allocate, lock, log or nest.
// Waiting is a short spin, then a futex sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace tq {

class ThreadPool {
 public:
  // num_threads counts the caller: 1 starts no thread. 0 = hardware threads.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // body(begin, end, range) for contiguous ranges whose bounds are multiples of `grain` (but the
  // end n); range < num_threads(), and no two run with the same one at a time: scratch memory goes
  // by it. Thread: one caller at a time. body must not throw.
  template <typename Body>
  void ParallelFor(int64_t n, int64_t grain, Body&& body) {
    using B = std::remove_reference_t<Body>;
    Run({n, grain, const_cast<void*>(static_cast<const void*>(&body)),
         [](void* context, int64_t begin, int64_t end, int range) {
           (*static_cast<B*>(context))(begin, end, range);
         }});
  }

 private:
  struct Job {
    int64_t n;
    int64_t grain;
    void* context;
    void (*call)(void* context, int64_t begin, int64_t end, int range);
  };
  void Run(const Job& job);
  void RunRange(int range) const;
  // Runs what nobody has begun of job `generation`, own range first.
  void RunUnclaimed(uint32_t generation, int thread);
  void WaitForOthers();
  void WorkerLoop(int thread);

  int num_threads_;
  Job job_{};
  std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> sleepers_{0};
  // Per range, the last job in which somebody took it. Every job takes every range, so a thread
  // that is late with an old job finds nothing.
  std::unique_ptr<std::atomic<uint32_t>[]> claims_;
  std::atomic<uint32_t> pending_{0};  // ranges that are not done
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

// Number of CPUs this process may use (affinity mask), at least 1.
int AvailableCpus();

}  // namespace tq

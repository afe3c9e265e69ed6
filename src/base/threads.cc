#include "base/threads.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tq {
namespace {

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Long enough to bridge the gap between two ops of a step (a few microseconds), short enough that an
// idle pool costs nothing.
constexpr int kSpins = 2000;

void FutexWait(std::atomic<uint32_t>& word, uint32_t seen) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr,
            0);
}

}  // namespace

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : AvailableCpus()) {
  for (int i = 1; i < num_threads_; ++i) workers_.emplace_back([this, i] { WorkerLoop(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  FutexWakeAll(generation_);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunRange(const Job& job, int thread) const {
  const int64_t grains = (job.n + job.grain - 1) / job.grain;
  const int64_t begin = std::min(job.n, grains * thread / num_threads_ * job.grain);
  const int64_t end = std::min(job.n, grains * (thread + 1) / num_threads_ * job.grain);
  if (begin < end) job.call(job.context, begin, end, thread);
}

void ThreadPool::Run(const Job& job) {
  if (num_threads_ == 1 || job.n <= job.grain) {
    if (job.n > 0) job.call(job.context, 0, job.n, 0);
    return;
  }
  job_ = job;
  pending_.store(num_threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1);  // publishes job_ and pending_
  if (sleepers_.load() > 0) FutexWakeAll(generation_);
  RunRange(job, 0);
  // Workers do equal shares, so the wait is short; yielding keeps an oversubscribed machine moving.
  for (int spins = 0; pending_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::WorkerLoop(int thread) {
  uint32_t seen = 0;
  while (true) {
    int spins = 0;
    while (generation_.load() == seen) {
      if (++spins < kSpins) {
        Pause();
        continue;
      }
      sleepers_.fetch_add(1);
      FutexWait(generation_, seen);
      sleepers_.fetch_sub(1);
    }
    seen = generation_.load();
    if (stop_.load()) return;
    RunRange(job_, thread);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace tq

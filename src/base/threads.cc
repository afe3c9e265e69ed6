#include "base/threads.h"

#include <algorithm>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// Long enough to bridge the gap between two ops of a step (a few microseconds), short enough that
// an idle pool costs nothing.
constexpr int kSpins = 2000;

void FutexWait(std::atomic<uint32_t>& word, uint32_t seen) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr,
            nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr,
            nullptr, 0);
}

}  // namespace

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : AvailableCpus()),
      claims_(new std::atomic<uint32_t>[static_cast<size_t>(num_threads_)]()) {
  for (int i = 1; i < num_threads_; ++i) workers_.emplace_back([this, i] { WorkerLoop(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  FutexWakeAll(generation_);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunRange(int range) const {
  const Job& job = job_;
  const int64_t grains = (job.n + job.grain - 1) / job.grain;
  const int64_t begin = std::min(job.n, grains * range / num_threads_ * job.grain);
  const int64_t end = std::min(job.n, grains * (range + 1) / num_threads_ * job.grain);
  if (begin < end) job.call(job.context, begin, end, range);
}

void ThreadPool::RunUnclaimed(uint32_t generation, int thread) {
  for (int i = 0; i < num_threads_; ++i) {
    const int range = (thread + i) % num_threads_;
    uint32_t last = generation - 1;
    // job_ stays what it is until every range is done, so it is read behind the claim only.
    if (!claims_[static_cast<size_t>(range)].compare_exchange_strong(last, generation)) continue;
    RunRange(range);
    if (pending_.fetch_sub(1) == 1 && caller_sleeps_.load()) FutexWakeAll(pending_);
  }
}

void ThreadPool::WaitForOthers() {
  for (int spins = 0; spins < kSpins; ++spins) {
    if (pending_.load() == 0) return;
    Pause();
  }
  // A thread that has begun is not running: leave it the processor.
  caller_sleeps_.store(true);
  for (uint32_t left = pending_.load(); left != 0; left = pending_.load()) {
    FutexWait(pending_, left);
  }
  caller_sleeps_.store(false);
}

void ThreadPool::Run(const Job& job) {
  if (num_threads_ == 1 || job.n <= job.grain) {
    if (job.n > 0) job.call(job.context, 0, job.n, 0);
    return;
  }
  job_ = job;
  pending_.store(static_cast<uint32_t>(num_threads_));
  const uint32_t generation = generation_.fetch_add(1) + 1;  // publishes job_ and pending_
  if (sleepers_.load() > 0) FutexWakeAll(generation_);
  RunUnclaimed(generation, 0);
  WaitForOthers();
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
    RunUnclaimed(seen, thread);
  }
}

}  // namespace tq

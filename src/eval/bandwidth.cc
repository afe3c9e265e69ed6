#include "eval/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backend/backend.h"
#include "base/threads.h"

namespace tq {
namespace {

constexpr int64_t kBufferBytes = int64_t{256} << 20;
constexpr int64_t kBlockBytes = 4096;
// A pass reads one slice, and slices take turns, so that no cache helps. Short passes find the
// moments when nobody else uses the memory.
constexpr int64_t kSlices = 16;
constexpr double kSeconds = 0.15;

// Eight independent sums, so that loads and not additions are the limit, and lines asked for a page
// ahead, as kernels do: without that a core waits for memory, and reads a fifth less.
uint64_t SumBlock(const uint64_t* words) {
  uint64_t sums[8] = {};
  for (int64_t i = 0; i < kBlockBytes / 8; i += 8) {
    __builtin_prefetch(words + i + kBlockBytes / 8);
    for (int64_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  uint64_t sum = 0;
  for (const uint64_t s : sums) sum += s;
  return sum;
}

}  // namespace

double MeasureReadBandwidth(int num_threads) {
  Result<Buffer> buffer = Buffer::Allocate(kBufferBytes, true);
  if (!buffer.ok()) return 0;
  ThreadPool pool(num_threads);
  const int64_t blocks = kBufferBytes / kBlockBytes;
  std::byte* data = buffer.value().data();
  // Untouched pages would all be the same zero page.
  pool.ParallelFor(blocks, 1, [&](int64_t begin, int64_t end, int) {
    std::memset(data + begin * kBlockBytes, 1, static_cast<size_t>((end - begin) * kBlockBytes));
  });
  std::vector<uint64_t> sums(static_cast<size_t>(pool.num_threads()) * 8);  // a cache line each
  double best = 0;
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto now = start;
  const int64_t slice_blocks = blocks / kSlices;
  for (int64_t pass = 0;
       pass < kSlices || std::chrono::duration<double>(now - start).count() < kSeconds; ++pass) {
    const auto before = now;
    const std::byte* slice = data + pass % kSlices * slice_blocks * kBlockBytes;
    pool.ParallelFor(slice_blocks, 1, [&](int64_t begin, int64_t end, int thread) {
      uint64_t sum = 0;
      for (int64_t i = begin; i < end; ++i) {
        sum += SumBlock(reinterpret_cast<const uint64_t*>(slice + i * kBlockBytes));
      }
      sums[static_cast<size_t>(thread) * 8] += sum;
    });
    now = Clock::now();
    best = std::max(best, static_cast<double>(slice_blocks * kBlockBytes) /
                              std::chrono::duration<double>(now - before).count());
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total == 0 ? 0 : best;  // the sum is used, so that the compiler keeps the loads
}

}  // namespace tq

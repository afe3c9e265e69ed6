#include "eval/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "base/task_queue.h"

namespace tq {
namespace {

constexpr int64_t kBlockBytes = 4096;
// Short passes find the moments when nobody else uses the memory.
constexpr int64_t kPassBytes = int64_t{16} << 20;
// What a thread reads before it looks whose turn it is.
constexpr int64_t kPieceBytes = int64_t{128} << 10;

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

uint64_t SumPiece(const std::byte* piece) {
  uint64_t sum = 0;
  for (int64_t at = 0; at < kPieceBytes; at += kBlockBytes) {
    sum += SumBlock(reinterpret_cast<const uint64_t*>(piece + at));
  }
  return sum;
}

}  // namespace

Result<BandwidthMeter> BandwidthMeter::Make(int64_t bytes, ThreadPool& pool) {
  const int64_t passes = std::max<int64_t>(bytes / kPassBytes, 1);
  TQ_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Allocate(passes * kPassBytes, /*huge_pages=*/true));
  // Untouched pages would all be the same zero page.
  pool.ParallelFor(passes, 1, [&](int64_t begin, int64_t end, int) {
    std::memset(buffer.data() + begin * kPassBytes, 1,
                static_cast<size_t>((end - begin) * kPassBytes));
  });
  return BandwidthMeter(std::move(buffer));
}

std::vector<double> BandwidthMeter::Rates(ThreadPool& pool, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto threads = static_cast<int64_t>(pool.num_threads());
  std::vector<RunCursor> cursors(static_cast<size_t>(threads));
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);  // a cache line each
  std::vector<double> rates;
  const int64_t passes = buffer_.size() / kPassBytes;
  const int64_t pieces_per_run = std::max<int64_t>(kPassBytes / kPieceBytes / threads, 1);
  const auto start = Clock::now();
  auto now = start;
  for (int64_t pass = 0;
       pass < passes || std::chrono::duration<double>(now - start).count() < seconds; ++pass) {
    const std::byte* data = buffer_.data() + pass % passes * kPassBytes;
    const auto before = now;
    RunQueue queue(cursors, pieces_per_run);
    pool.ParallelFor(threads, 1, [&](int64_t, int64_t, int thread) {
      uint64_t sum = 0;
      for (int64_t piece = queue.Next(thread); piece >= 0; piece = queue.Next(thread)) {
        sum += SumPiece(data + piece * kPieceBytes % kPassBytes);
      }
      sums[static_cast<size_t>(thread) * 8] += sum;
    });
    now = Clock::now();
    rates.push_back(static_cast<double>(pieces_per_run * threads * kPieceBytes) /
                    std::chrono::duration<double>(now - before).count());
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  if (total == 0) return {0.0};  // the sum is used, so that the compiler keeps the loads
  std::sort(rates.begin(), rates.end(), std::greater<>());
  return rates;
}

double MeasureReadBandwidth(int num_threads) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  constexpr double kSeconds = 0.15;
  ThreadPool pool(num_threads);
  Result<BandwidthMeter> meter = BandwidthMeter::Make(kBytes, pool);
  return meter.ok() ? meter.value().Rates(pool, kSeconds)[0] : 0;
}

}  // namespace tq

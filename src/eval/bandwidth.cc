#include "eval/bandwidth.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "base/task_queue.h"

namespace tq {
namespace {

// Short passes find the moments when nobody else uses the memory.
constexpr int64_t kPassBytes = int64_t{16} << 20;
// What a thread reads before it looks whose turn it is.
constexpr int64_t kPieceBytes = int64_t{128} << 10;

// Processors differ in what makes them read fastest: their own prefetching alone, lines asked for a
// page ahead, or also from further away, as the kernels do. Passes take turns.
enum Style : uint8_t { kPlain, kAhead, kFarAhead, kNumStyles };

// Two words of a line bring all of it, and leave room for more lines under way.
template <Style kStyle>
uint64_t SumPiece(const std::byte* piece) {
  uint64_t sums[2] = {};
  for (int64_t at = 0; at < kPieceBytes; at += 64) {
    const std::byte* line = piece + at;
    if constexpr (kStyle == kFarAhead) __builtin_prefetch(line + 12288, 0, 2);
    if constexpr (kStyle != kPlain) __builtin_prefetch(line + 4096, 0, 3);
    for (int half = 0; half < 2; ++half) {
      uint64_t word;
      std::memcpy(&word, line + half * 32, sizeof(word));
      sums[half] += word;
    }
  }
  return sums[0] + sums[1];
}

constexpr uint64_t (*kSumPiece[kNumStyles])(const std::byte*) = {SumPiece<kPlain>, SumPiece<kAhead>,
                                                                 SumPiece<kFarAhead>};

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

double BandwidthMeter::Rate(ThreadPool& pool, double seconds, double share) {
  using Clock = std::chrono::steady_clock;
  const auto threads = static_cast<int64_t>(pool.num_threads());
  std::vector<RunCursor> cursors(static_cast<size_t>(threads));
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);  // a cache line each
  std::array<std::vector<double>, kNumStyles> rates;
  const int64_t passes = buffer_.size() / kPassBytes;
  const int64_t pieces_per_run = std::max<int64_t>(kPassBytes / kPieceBytes / threads, 1);
  const auto start = Clock::now();
  auto now = start;
  for (int64_t pass = 0;
       pass < kNumStyles * passes || std::chrono::duration<double>(now - start).count() < seconds;
       ++pass) {
    const std::byte* data = buffer_.data() + pass % passes * kPassBytes;
    const auto style = static_cast<size_t>(pass / passes % kNumStyles);
    const auto before = now;
    RunQueue queue(cursors, pieces_per_run);
    pool.ParallelFor(threads, 1, [&](int64_t, int64_t, int thread) {
      uint64_t sum = 0;
      for (int64_t piece = queue.Next(thread); piece >= 0; piece = queue.Next(thread)) {
        sum += kSumPiece[style](data + piece * kPieceBytes % kPassBytes);
      }
      sums[static_cast<size_t>(thread) * 8] += sum;
    });
    now = Clock::now();
    rates[style].push_back(static_cast<double>(pieces_per_run * threads * kPieceBytes) /
                           std::chrono::duration<double>(now - before).count());
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  if (total == 0) return 0;  // the sum is used, so that the compiler keeps the loads
  double best = 0;
  for (std::vector<double>& of_style : rates) {
    std::sort(of_style.begin(), of_style.end(), std::greater<>());
    const double at = share * static_cast<double>(of_style.size() - 1);
    best = std::max(best, of_style[static_cast<size_t>(at)]);
  }
  return best;
}

double MeasureReadBandwidth(int num_threads) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  constexpr double kSeconds = 0.15;
  // A step of a model lasts as long as many passes: the one best moment would be out of its reach.
  constexpr double kShare = 0.1;
  ThreadPool pool(num_threads);
  Result<BandwidthMeter> meter = BandwidthMeter::Make(kBytes, pool);
  return meter.ok() ? meter.value().Rate(pool, kSeconds, kShare) : 0;
}

}  // namespace tq

// How fast this machine reads memory: the ceiling of decoding, which reads all weights once per
// token.
#pragma once

#include <cstdint>
#include <utility>

#include "backend/backend.h"
#include "base/threads.h"

namespace tq {

// Reads the ways kernels do: each thread its own stream, with or without lines asked for in
// advance, and who is done early helps the others.
class BandwidthMeter {
 public:
  // `bytes`, rounded down to passes of 16 MiB (at least one), in huge pages, written once. Errors:
  // kOutOfMemory.
  static Result<BandwidthMeter> Make(int64_t bytes, ThreadPool& pool);
  // Reads pass after pass, in turn over all of the memory so that no cache helps: over everything
  // once in each way, and for at least `seconds`. Returns the bytes per second of the slowest among
  // the fastest `share` (0: one pass) of the passes, of the way that is best by that.
  double Rate(ThreadPool& pool, double seconds, double share);

 private:
  explicit BandwidthMeter(Buffer buffer) : buffer_(std::move(buffer)) {}
  Buffer buffer_;
};

// Bytes per second of num_threads threads (0: all CPUs): of the fastest tenth of the passes over 256
// MiB in about 0.15 s. 0 when that memory is not there.
double MeasureReadBandwidth(int num_threads);

}  // namespace tq

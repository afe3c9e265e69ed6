// Calibrate: runs a model over texts and writes what its matrices saw (hessian_file.h), for a
// conversion that rounds by it. The model stays as it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "model/model.h"
#include "weights/source.h"

namespace tq {

struct CalibrateOptions {
  int64_t seq_len = 512;                    // tokens per sample
  int64_t num_samples = 32;                 // at most, over all texts
  int64_t memory_bytes = int64_t{8} << 30;  // of the sums; beyond it the texts run several times
  int num_threads = 0;                      // 0: all CPUs
  KvSettings kv = KvFormat::kF32;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done_tokens, int64_t total_tokens)> progress;
};

struct CalibrateReport {
  int64_t samples = 0;
  int64_t tokens = 0;
  int64_t inputs = 0;
  int64_t continued_inputs = 0;  // of them: from an interrupted run
  int64_t passes = 0;            // over the texts
  int64_t file_bytes = 0;
  double seconds = 0;
};

// texts: the ids of each. They give equal numbers of samples as far as they go; the samples of a
// text are spread evenly over it. Errors: kInvalidArgument (no text of seq_len ids, ids beyond the
// vocabulary, a sample longer than the context), kOutOfMemory (one sum is beyond memory_bytes),
// kIo, kBusy (another run writes the file), kCancelled. Inputs whose pass is complete outlast a
// stop: the same call continues behind them.
Result<CalibrateReport> Calibrate(const WeightSource& source, const Model& model, Backend& backend,
                                  const std::vector<std::vector<int32_t>>& texts,
                                  const std::string& path, const CalibrateOptions& options);

}  // namespace tq

// SequentialRounding: rounds the matrices of a model block by block in the order of its forward
// pass, each for what it sees when the ones before it are rounded already, and so that it gives
// what the original gave. The samples of a calibration run through both models, side by side.
// Errors then do not add up over the layers. Method: docs/quality.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "quantize/convert_plan.h"
#include "quantize/hessian_file.h"
#include "quantize/rounded_store.h"
#include "quantize/work_folder.h"
#include "weights/source.h"

namespace tq {

struct SequentialOptions {
  int64_t memory_bytes = int64_t{8} << 30;  // of the sums; beyond it a block runs more often
  int num_threads = 0;
  bool resume = false;  // for what is said when it is cancelled
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done_weights)> progress;
};

// The blocks' quantized matrices among `items` go to files in `folder`, one per block, which count
// as finished there; those of an earlier run stay. Returns what is in them, and the files' names.
// A matrix that no token reached is not among them.
// Memory: two residuals of all samples, one block's matrices as f32, and the sums.
// Errors: kUnsupported (a model whose blocks do not stand alone), kOutOfMemory, kCorrupt, kIo,
// kCancelled.
struct SequentialResult {
  RoundedStore store;
  std::vector<std::string> files;
};
Result<std::unique_ptr<SequentialResult>> RoundSequentially(const WeightSource& source,
                                                            const std::vector<ConvertItem>& items,
                                                            const HessianFile& calibration,
                                                            Backend& backend, WorkFolder& folder,
                                                            const SequentialOptions& options);

}  // namespace tq

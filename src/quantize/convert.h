// Convert: a readable checkpoint -> a TurboQuant checkpoint in the published layout. Tensors stream
// through: memory is one matrix of codes plus a few rows. The output folder appears whole or not at
// all.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "quantize/layer_bits.h"
#include "tensor/dtype.h"
#include "weights/source.h"

namespace tq {

// How weights become codes and scales; the format and its readers are the same for all.
enum class Rounding : uint8_t {
  kRms,     // the bytes of the published converter
  kSearch,  // the scale of every group with the least squared error
};

struct ConvertOptions {
  QuantizeSettings settings;
  Rounding rounding = Rounding::kSearch;
  // A file of Calibrate for this source: error feedback (quantize/ldlq.h) instead of `rounding`.
  std::string calibration;
  // With a calibration: matrices are rounded one after the other on its samples
  // (quantize/sequential_rounding.h), run on this backend in f32. Null: each for itself.
  Backend* sequential = nullptr;
  // Type of the floats that are kept, and of affine scales; empty: the source's.
  std::optional<DType> dtype;
  bool keep_mtp = false;  // the draft head (mtp.*), as model-mtp.safetensors
  // Only the matrices of this kind (KindOfPath) and no other tensors: no whole checkpoint. Empty:
  // all.
  std::string only_kind;
  int num_threads = 0;  // 0: all CPUs
  int64_t max_shard_bytes = int64_t{5} << 30;
  // An interrupted conversion leaves its finished shards in a hidden folder beside the output; the
  // same conversion goes on from there. The result is the same, byte for byte.
  bool resume = false;
  const std::atomic<bool>* cancel = nullptr;  // set: stop soon with kCancelled
  // done and total count weights (elements); called after every piece, on the caller's thread.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct ConvertReport {
  int64_t quantized_matrices = 0;
  int64_t quantized_weights = 0;  // elements in them
  int64_t quantized_bytes = 0;    // codes, scales, codebooks, signs
  int64_t total_weights = 0;
  int64_t source_bytes = 0;
  int64_t output_bytes = 0;  // tensors
  double seconds = 0;
  std::vector<std::string> warnings;
};

// 0 for no weights.
double BitsPerWeight(int64_t bytes, int64_t weights);

// Errors: kInvalidArgument (the output exists; settings; the source is TurboQuant already; the
// calibration is another checkpoint's; with resume: the work that was left is another
// conversion's), kCorrupt (the source; the calibration; weights that are
// NaN, infinite or too large), kIo, kCancelled.
Result<ConvertReport> Convert(const WeightSource& source, const std::string& output_folder,
                              const ConvertOptions& options);

}  // namespace tq

// Export: any readable checkpoint -> plain floats in Hugging Face's layout, or one GGUF file.
// Quantized matrices are decoded and rotations undone. Tensors stream through: memory is one matrix
// and a few rows. The output appears whole or not at all.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"
#include "weights/source.h"

namespace tq {

enum class GgufMatrices : uint8_t { kF16, kQ8_0 };

struct ExportOptions {
  // Hugging Face: kBf16 or kF16; empty: the source's float type, bf16 when that is neither.
  std::optional<DType> dtype = std::nullopt;
  GgufMatrices matrices = GgufMatrices::kF16;  // GGUF; its vectors are f32
  int num_threads = 0;                         // 0: all CPUs
  int64_t max_shard_bytes = int64_t{5} << 30;  // Hugging Face
  const std::atomic<bool>* cancel = nullptr;   // set: stop soon with kCancelled
  // done and total count weights (elements); called after every piece, on the caller's thread.
  std::function<void(int64_t done, int64_t total)> progress = nullptr;
};

struct ExportReport {
  std::string type;  // of the matrices: "BF16", "F16", "Q8_0"
  int64_t tensors = 0;
  int64_t total_weights = 0;
  int64_t source_bytes = 0;
  int64_t output_bytes = 0;  // tensors
  double seconds = 0;
  std::vector<std::string> warnings;
};

// A folder of safetensors under Hugging Face's names, config.json without its quantization, and the
// source's documents. Errors: kInvalidArgument (the output exists, the dtype), kCorrupt (the
// source; weights that are NaN, infinite, or too large for the dtype), kNotFound, kIo, kCancelled.
Result<ExportReport> ExportHuggingFace(const WeightSource& source, const std::string& output_folder,
                                       const ExportOptions& options);

// One GGUF v3 file with tokenizer and chat template. Errors: as above; kUnsupported for an
// architecture, a setting or a tokenizer that GGUF, as it is read here, cannot express.
Result<ExportReport> ExportGguf(const WeightSource& source, const std::string& output_file,
                                const ExportOptions& options);

}  // namespace tq

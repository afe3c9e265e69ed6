// What a checkpoint holds, for `inspect`: from headers alone, and with the prepared weights when it
// is loaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/checkpoint_parts.h"
#include "model/model.h"
#include "model/spec.h"
#include "weights/source.h"

namespace tq {

// Matrices of one kind ("self_attn.q_proj"), shape and format, all layers together.
struct MatrixKind {
  std::string kind;
  std::string format;  // "turboquant 3-bit g64 hadamard", "BF16"
  Shape shape;
  int64_t count = 0;
  int64_t weights = 0;
  int64_t stored_bytes = 0;
  std::string kernel;  // "" when not loaded; several have commas
  int64_t prepared_bytes = 0;
  double bits_per_weight() const {
    return weights == 0 ? 0
                        : 8.0 * static_cast<double>(stored_bytes) / static_cast<double>(weights);
  }
};

struct CheckpointReport {
  std::optional<ModelSpec> spec;  // empty: see not_runnable
  std::string not_runnable;       // why this build cannot run it; "" when it can
  std::vector<MatrixKind> kinds;  // in the order of the model
  std::map<std::string, size_t>
      kind_of_path;          // "model.layers.3.self_attn.q_proj" -> index in kinds
  int64_t stored_bytes = 0;  // all tensors of the file
  CheckpointParts parts;     // with a spec
};

// Errors: kCorrupt, kNotFound. What is only unsupported goes into not_runnable.
Result<CheckpointReport> ReportCheckpoint(const WeightSource& source);
// Adds kernels and prepared sizes.
void AddPrepared(const Model& model, CheckpointReport& report);
// KV cache of one token, all layers.
int64_t KvBytesPerToken(const ModelSpec& spec, const KvSettings& settings);

// "I32", or the codec of a block format.
std::string StoredTypeName(const SourceTensor& tensor);

std::string KindsTable(const CheckpointReport& report);
OrderedJson KindsJson(const CheckpointReport& report);

}  // namespace tq

// TensorNeed: one tensor that a model demands from its checkpoint, and the interface by which a
// model asks for its tensors. The same code of a model runs against a loader (which reads and
// prepares them) and against a recorder (which lists them for the converter and `inspect`).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/status.h"
#include "tensor/view.h"

namespace tq {

// What a tensor is for: decides what a converter does with it.
enum class TensorRole : uint8_t {
  kLinear,     // may be quantized
  kEmbedding,  // one row per token
  kNorm,
  kBias,
  kSmall,  // matrices that stay floats: routers, convolutions, gates, indexers; decay and other
           // vectors
};

struct TensorNeed {
  std::string name;  // "model.layers.3.self_attn.q_proj.weight"
  Shape shape;
  TensorRole role;
  bool mapped = false;  // rows are read from the file when they are wanted (row_table.h)
};

// A prepared matrix with its bias and name.
struct Linear {
  std::string name;
  std::unique_ptr<Weight> weight;  // null in a recorded model
  std::vector<float> bias;         // empty: none
  MatMulArgs Args(const float* x, float* y, int64_t num_tokens) const {
    return {weight.get(), x, bias.empty() ? nullptr : bias.data(), y, num_tokens};
  }
};

// A part of a stored matrix: rows [row_begin, row_begin + num_rows), maybe transposed.
struct MatrixPart {
  int64_t row_begin;
  int64_t num_rows;
  bool transposed;
};

class RowTable;

class TensorLoader {
 public:
  virtual ~TensorLoader() = default;
  // `name` is the full tensor name ("model.embed_tokens.weight"), in any readable format.
  virtual Result<std::unique_ptr<Weight>> Matrix(const std::string& name, int64_t rows,
                                                 int64_t cols, TensorRole role) = 0;
  // A matrix that stays in the file. Null from a recorder.
  virtual Result<std::unique_ptr<RowTable>> Rows(const std::string& name, int64_t rows,
                                                 int64_t cols) = 0;
  // Several matrices cut out of one stored matrix [rows, cols] that is never used whole.
  virtual Result<std::vector<std::unique_ptr<Weight>>> MatrixParts(
      const std::string& name, int64_t rows, int64_t cols,
      const std::vector<MatrixPart>& parts) = 0;
  // All values as f32. Errors: as Matrix; kCorrupt for NaN or infinity.
  virtual Result<std::vector<float>> Floats(const std::string& name, const Shape& shape,
                                            TensorRole role) = 0;
  // The first n values of a tensor of any shape (some checkpoints pad or reshape short vectors).
  virtual Result<std::vector<float>> FirstFloats(const std::string& name, int64_t n) = 0;
  // int64 buffers. Errors: as Floats.
  virtual Result<std::vector<int64_t>> Integers(const std::string& name, int64_t n) = 0;
  // False for a recorder, whose values mean nothing.
  virtual bool reads() const = 0;
  // For tensors that have two published forms; a recorder without a source knows the first only.
  virtual bool Has(const std::string& name) const = 0;

  Result<std::vector<float>> Vector(const std::string& name, int64_t n,
                                    TensorRole role = TensorRole::kNorm) {
    return Floats(name, {n}, role);
  }
  // The kernel of a depthwise convolution, stored [channels, kernel], as [kernel, channels].
  Result<std::vector<float>> ConvKernel(const std::string& name, int64_t channels, int64_t kernel);
  // path.weight [rows, cols], and path.bias [rows] when `bias`.
  Result<Linear> LoadLinear(const std::string& path, int64_t rows, int64_t cols, bool bias,
                            TensorRole role = TensorRole::kLinear);
};

}  // namespace tq

// The tensors of an export, one after the other: rows are decoded, changed and rounded on all
// threads, piece by piece.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "quantize/export.h"
#include "weights/tensor_need.h"

namespace tq {

// How values are written.
enum class ExportType : uint8_t { kF32, kF16, kBf16, kQ8_0, kI64 };

enum class ExportChange : uint8_t {
  kNone,
  kPlusOne,   // 1 + w
  kMinusOne,  // w - 1
  kHeadRows,  // rows of a head go from [2, head_dim / 2] to [head_dim / 2, 2]
};

// The heads of a latent attention as MLX stores them: embed_q.H [rank, nope], unembed_out.H
// [values, rank]. Hugging Face has one kv_b_proj [heads * (nope + values), rank].
struct LatentHeads {
  std::string prefix;  // "model.layers.0.self_attn."
  int64_t heads = 0;
  int64_t nope = 0;
  int64_t values = 0;
  int64_t rank = 0;
};

struct ExportItem {
  TensorNeed need;   // what to read
  std::string name;  // in the output
  Shape shape;       // in the output
  ExportType type = ExportType::kF32;
  ExportChange change = ExportChange::kNone;
  int64_t head_dim = 0;       // of kHeadRows
  LatentHeads latent;         // heads > 0: in place of need
  std::vector<float> values;  // not empty: in place of need
  int64_t rows() const;       // shape as a matrix
  int64_t cols() const;
  int64_t weights() const { return rows() * cols(); }
  int64_t output_bytes() const;
};

class ExportStream {
 public:
  using Append = std::function<Status(std::span<const std::byte> bytes)>;

  // total: weights of all items, for progress. config_rotates: see ReadMatrix.
  ExportStream(const WeightSource& source, bool config_rotates, const ExportOptions& options,
               int64_t total)
      : source_(source),
        config_rotates_(config_rotates),
        options_(options),
        pool_(options.num_threads),
        total_(total) {}

  // Errors: what `append` returns; kCorrupt, kNotFound naming the tensor; kCancelled.
  Status Write(const ExportItem& item, const Append& append);

 private:
  struct Rows;
  Result<Rows> Open(const ExportItem& item) const;
  Result<Rows> OpenLatent(const LatentHeads& latent) const;
  Status WriteIntegers(const ExportItem& item, const Append& append);
  Status Advance(int64_t weights);

  const WeightSource& source_;
  bool config_rotates_;
  const ExportOptions& options_;
  ThreadPool pool_;
  int64_t done_ = 0;
  int64_t total_;
  std::vector<std::byte> piece_;
  std::vector<std::vector<float>> rows_;  // one per thread
};

}  // namespace tq

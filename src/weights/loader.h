// WeightLoader: takes tensors out of a source by name, checks them, and prepares them for a
// backend. It remembers what was taken, so that a checkpoint with tensors that nobody asked for is
// refused. Thread: one caller.
//
// With MatrixValues::kShapes and a sizing backend (backend/sizing.h) it makes a model for a memory
// plan: nothing behind the headers is read, floats are zeros, integers are ones.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/read_ahead.h"
#include "weights/matrix_tensors.h"
#include "weights/row_table.h"
#include "weights/source.h"
#include "weights/tensor_need.h"

namespace tq {

class WeightLoader : public TensorLoader {
 public:
  // progress(done, total) in bytes of the source; may be empty.
  WeightLoader(const WeightSource& source, Backend& backend, bool config_rotates,
               std::function<void(int64_t, int64_t)> progress,
               MatrixValues values = MatrixValues::kAll);

  // Has the files read ahead: `needs` will be asked for in this order, or nearly so.
  void Expect(const std::vector<TensorNeed>& needs);

  Result<std::unique_ptr<Weight>> Matrix(const std::string& name, int64_t rows, int64_t cols,
                                         TensorRole role) override;
  Result<std::unique_ptr<RowTable>> Rows(const std::string& name, int64_t rows,
                                         int64_t cols) override;
  Result<std::vector<std::unique_ptr<Weight>>> MatrixParts(
      const std::string& name, int64_t rows, int64_t cols,
      const std::vector<MatrixPart>& parts) override;
  Result<std::vector<float>> Floats(const std::string& name, const Shape& shape,
                                    TensorRole role) override;
  Result<std::vector<float>> FirstFloats(const std::string& name, int64_t n) override;
  Result<std::vector<int64_t>> Integers(const std::string& name, int64_t n) override;
  bool reads() const override { return values_ == MatrixValues::kAll; }
  bool Has(const std::string& name) const override { return source_.Find(name) != nullptr; }

  // Errors: kCorrupt naming tensors that nothing used. `tied`: lm_head copies are fine.
  Status CheckAllUsed(bool tied) const;

  int64_t prepared_bytes() const { return prepared_bytes_; }
  int64_t float_bytes() const { return float_bytes_; }  // norms, biases and the like, as f32
  // The most that was in use at a time: what is prepared, and the stored form of what is next.
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  // `name` ends in ".weight".
  Result<MatrixTensors> Read(const std::string& name, int64_t rows, int64_t cols);
  void Use(const SourceTensor& tensor);
  void UseAll(const MatrixTensors& tensors);
  void Count(int64_t prepared, int64_t floats, int64_t passing);
  Result<std::vector<std::unique_ptr<Weight>>> SizedParts(const std::string& name, int64_t rows,
                                                          int64_t cols,
                                                          const std::vector<MatrixPart>& parts);

  const WeightSource& source_;
  Backend& backend_;
  bool config_rotates_;
  MatrixValues values_;
  std::function<void(int64_t, int64_t)> progress_;
  int64_t done_bytes_ = 0;
  int64_t total_bytes_ = 0;
  int64_t prepared_bytes_ = 0;
  int64_t float_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  std::set<std::string, std::less<>> used_;
  std::unique_ptr<ReadAhead> read_ahead_;  // or null
};

}  // namespace tq

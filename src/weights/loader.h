// WeightLoader: takes tensors out of a source by name, checks them, and prepares them for a
// backend. It remembers what was taken, so that a checkpoint with tensors that nobody asked for is
// refused. Thread: one caller.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "weights/matrix_tensors.h"
#include "weights/row_table.h"
#include "weights/source.h"
#include "weights/tensor_need.h"

namespace tq {

class WeightLoader : public TensorLoader {
 public:
  // progress(done, total) in bytes of the source; may be empty.
  WeightLoader(const WeightSource& source, Backend& backend, bool config_rotates,
               std::function<void(int64_t, int64_t)> progress);

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
  bool reads() const override { return true; }
  bool Has(const std::string& name) const override { return source_.Find(name) != nullptr; }

  // Errors: kCorrupt naming tensors that nothing used. `tied`: lm_head copies are fine.
  Status CheckAllUsed(bool tied) const;

 private:
  // `name` ends in ".weight".
  Result<MatrixTensors> Read(const std::string& name, int64_t rows, int64_t cols);
  void Use(const SourceTensor& tensor);
  void UseAll(const MatrixTensors& tensors);

  const WeightSource& source_;
  Backend& backend_;
  bool config_rotates_;
  std::function<void(int64_t, int64_t)> progress_;
  int64_t done_bytes_ = 0;
  int64_t total_bytes_ = 0;
  std::set<std::string, std::less<>> used_;
};

}  // namespace tq

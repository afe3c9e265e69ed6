// NeedRecorder: a TensorLoader that reads nothing and lists what was asked for, in order.
#pragma once

#include <string>
#include <vector>

#include "weights/source.h"
#include "weights/tensor_need.h"

namespace tq {

class NeedRecorder : public TensorLoader {
 public:
  // source: answers Has; null: every tensor exists. Must outlive the recorder.
  explicit NeedRecorder(const WeightSource* source) : source_(source) {}

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
  bool reads() const override { return false; }
  bool Has(const std::string& name) const override;

  std::vector<TensorNeed> Take() { return std::move(needs_); }

 private:
  const WeightSource* source_;
  std::vector<TensorNeed> needs_;
};

}  // namespace tq

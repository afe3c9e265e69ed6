#include "weights/need_recorder.h"

#include "weights/row_table.h"

namespace tq {

Result<std::unique_ptr<Weight>> NeedRecorder::Matrix(const std::string& name, int64_t rows,
                                                     int64_t cols, TensorRole role) {
  needs_.push_back({name, {rows, cols}, role});
  return std::unique_ptr<Weight>();
}

Result<std::unique_ptr<RowTable>> NeedRecorder::Rows(const std::string& name, int64_t rows,
                                                     int64_t cols) {
  needs_.push_back({name, {rows, cols}, TensorRole::kEmbedding, true});
  return std::unique_ptr<RowTable>();
}

Result<std::vector<std::unique_ptr<Weight>>> NeedRecorder::MatrixParts(
    const std::string& name, int64_t rows, int64_t cols, const std::vector<MatrixPart>& parts) {
  needs_.push_back({name, {rows, cols}, TensorRole::kSmall});
  return std::vector<std::unique_ptr<Weight>>(parts.size());
}

Result<std::vector<float>> NeedRecorder::Floats(const std::string& name, const Shape& shape,
                                                TensorRole role) {
  needs_.push_back({name, shape, role});
  return std::vector<float>();
}

Result<std::vector<float>> NeedRecorder::FirstFloats(const std::string& name, int64_t n) {
  const SourceTensor* tensor = source_ != nullptr ? source_->Find(name) : nullptr;
  needs_.push_back({name, tensor != nullptr ? tensor->shape : Shape{n}, TensorRole::kSmall});
  return std::vector<float>();
}

Result<std::vector<int64_t>> NeedRecorder::Integers(const std::string& name, int64_t n) {
  needs_.push_back({name, {n}, TensorRole::kSmall});
  return std::vector<int64_t>(static_cast<size_t>(n), 0);
}

bool NeedRecorder::Has(const std::string& name) const {
  return source_ == nullptr || source_->Find(name) != nullptr;
}

}  // namespace tq

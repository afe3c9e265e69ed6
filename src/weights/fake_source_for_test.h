// A WeightSource of tensors in memory, for tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "weights/source.h"

namespace tq {

class FakeSource : public WeightSource {
 public:
  template <typename T>
  void Add(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    SourceTensor tensor;
    tensor.name = name;
    tensor.shape = shape;
    tensor.dtype = dtype;
    tensor.is_float_like = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBf16;
    tensor.codec = dtype == DType::kBf16  ? CodecId::kBf16
                   : dtype == DType::kF16 ? CodecId::kF16
                                          : CodecId::kF32;
    auto& bytes = bytes_.emplace_back(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    tensor.bytes = bytes;
    TQ_CHECK(NumElements(shape) * static_cast<int64_t>(DTypeBytes(dtype)) ==
             static_cast<int64_t>(bytes.size()));
    tensors_.push_back(tensor);
    std::sort(tensors_.begin(), tensors_.end(),
              [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
  }
  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "fake"; }
  const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  Result<std::string> ReadDocument(const std::string&) const override { return NotFound("none"); }
  std::vector<std::string> DocumentNames() const override { return {}; }
  void DropPages(const SourceTensor&) const override {}

 private:
  std::string path_ = "fake";
  std::list<std::vector<std::byte>> bytes_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace tq

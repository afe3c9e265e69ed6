// A checkpoint's tensors under the names and in the shapes of its files, to be renamed, reshaped
// and written again: what other writers would have made of the same weights.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace tq::test {

struct RawTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;
};

class RawCheckpoint {
 public:
  // Reads model.safetensors and config.json of `folder`.
  explicit RawCheckpoint(const std::string& folder);
  // Writes both to a new folder below the tests' temporary one and returns its path.
  std::string Write(const std::string& name) const;

  RawTensor* Find(const std::string& name);
  void Add(const std::string& name, const Shape& shape);  // bf16 zeros
  void Rename(const std::function<std::string(std::string)>& new_name);
  // [n, ...] of tensors with the same shape, in this order; they go.
  void Stack(const std::vector<std::string>& names, const std::string& stacked);

  std::vector<RawTensor> tensors;
  OrderedJson config;
};

// "a.b.c" with `to` in place of `from`, where there is one.
std::string Replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace tq::test

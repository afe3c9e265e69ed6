// For tests: the tensors of a safetensors file in memory. Trusts the file; not the engine's reader.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tensor/half.h"

namespace tq {

class TestTensors {
 public:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string_view bytes;

    int64_t rows() const { return shape.size() < 2 ? 1 : shape[0]; }
    int64_t cols() const { return shape.back(); }

    template <typename T>
    std::vector<T> As() const {
      std::vector<T> values(bytes.size() / sizeof(T));
      std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
      return values;
    }
    // f32, f16, bf16 or int8 as f32.
    std::vector<float> Floats() const {
      if (dtype == "F32") return As<float>();
      std::vector<float> out;
      if (dtype == "I8") {
        for (const int8_t value : As<int8_t>()) out.push_back(value);
      } else {
        for (const uint16_t bits : As<uint16_t>()) {
          out.push_back(dtype == "F16" ? F16ToF32(bits) : Bf16ToF32(bits));
        }
      }
      return out;
    }
  };

  explicit TestTensors(const std::string& path) {
    auto content = ReadTextFile(path);
    EXPECT_TRUE(content.ok()) << path;
    if (!content.ok()) return;
    content_ = std::move(content).value();
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, content_.data(), 8);
    const std::string_view all = content_;
    auto header = ParseJson(all.substr(8, header_bytes), path);
    EXPECT_TRUE(header.ok());
    if (!header.ok()) return;
    for (const auto& [name, info] : header->items()) {
      if (name == "__metadata__") continue;
      const uint64_t begin = info["data_offsets"][0], end = info["data_offsets"][1];
      tensors_[name] = {info["dtype"], info["shape"],
                        all.substr(8 + header_bytes + begin, end - begin)};
    }
  }

  const std::map<std::string, Tensor>& all() const { return tensors_; }
  bool Has(const std::string& name) const { return tensors_.contains(name); }
  const Tensor& operator[](const std::string& name) const { return tensors_.at(name); }

 private:
  std::string content_;
  std::map<std::string, Tensor> tensors_;
};

inline std::vector<std::string> SplitName(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace tq

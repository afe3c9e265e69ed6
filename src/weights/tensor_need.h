// TensorNeed: one tensor that a model demands from its checkpoint. The lists are made by model/ and
// used by the loader, the converter and `inspect`.
#pragma once

#include <string>
#include <vector>

#include "tensor/view.h"

namespace tq {

// What a tensor is for: decides what a converter does with it.
enum class TensorRole : uint8_t { kLinear, kEmbedding, kNorm, kBias };

struct TensorNeed {
  std::string name;  // "model.layers.3.self_attn.q_proj.weight"
  Shape shape;
  TensorRole role;
};

// path + ".weight" [rows, cols], and path + ".bias" [rows] when there is one.
inline void AppendLinearTensors(const std::string& path, int64_t rows, int64_t cols, bool bias,
                                std::vector<TensorNeed>& out) {
  out.push_back({path + ".weight", {rows, cols}, TensorRole::kLinear});
  if (bias) out.push_back({path + ".bias", {rows}, TensorRole::kBias});
}

}  // namespace tq

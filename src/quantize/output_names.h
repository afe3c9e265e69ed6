// Names and layouts of a TurboQuant checkpoint where they differ from the ones that the models ask
// for: the published loader wants stacks of experts, MLX's convolutions and folded norms.
#pragma once

#include <string>
#include <string_view>

#include "model/spec.h"

namespace tq {

// The stack that an expert's matrix belongs to, or that of a latent attention's head.
struct ExpertPath {
  bool is_expert = false;
  bool is_head = false;
  std::string stack;  // "model.layers.0.mlp.switch_mlp.gate_proj"
  std::string part;   // "weight", "bias"
};

// name: canonical ("model.layers.0.mlp.experts.3.gate_proj.weight").
ExpertPath ParseExpertPath(std::string_view name, std::string_view model_type);

// The name in the output of a tensor that is no expert's.
std::string OutputName(std::string_view name, std::string_view model_type);

// The output holds 1 + w for this norm of a model whose norms are stored as w - 1.
bool FoldsNorm(const ModelSpec& model, const TensorNeed& need);

// A depthwise convolution: [channels, kernel] becomes [channels, kernel, 1].
bool IsConvolution(std::string_view name);

}  // namespace tq

#include "weights/checkpoint_facts.h"

#include <string_view>

#include "weights/source.h"

namespace tq {

bool NormsIncludeOne(const std::vector<SourceTensor>& stored) {
  bool mlx_layout = false;
  for (const SourceTensor& tensor : stored) {
    const std::string_view name = tensor.name;
    // Signs of Hugging Face's own files: their prefix, experts one by one, [channels, 1, taps].
    if (name.starts_with("model.language_model.")) return false;
    if (name.ends_with(".mlp.experts.0.up_proj.weight")) return false;
    if (!name.ends_with(".linear_attn.conv1d.weight") || tensor.shape.size() != 3) continue;
    if (tensor.shape[2] != 1) return false;
    mlx_layout = true;
  }
  return mlx_layout;
}

}  // namespace tq

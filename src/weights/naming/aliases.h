// One name for every tensor: the spellings of Hugging Face, MLX and other writers, mapped to the
// one that the models ask for. Each alias is one line of a table in aliases.cc. Renames only: parts
// of fused and stacked tensors are fused.cc and stacks.cc.
#pragma once

#include <string>
#include <string_view>

namespace tq {

// model_type: of config.json, for the few aliases that are right for one type only.
std::string CanonicalName(std::string_view stored, std::string_view model_type);

// Vision and audio parts of a multimodal checkpoint, by canonical name: their tensors keep their
// shapes.
bool IsTowerTensor(std::string_view name);
// Of a tower tensor: it belongs to the audio part.
bool IsAudioTensor(std::string_view name);

}  // namespace tq

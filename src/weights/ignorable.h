// Tensors that a checkpoint may carry although no forward pass of the text model reads them.
#pragma once

#include <string_view>

#include "weights/source.h"

namespace tq {

// Which part of a checkpoint such a tensor belongs to, by canonical name: "vision tower", "audio
// tower", "draft head" (mtp.*, and layers with an eh_proj of their own after the model's last), or
// "buffer" (rotary frequencies, scales of quantized activations and caches). Empty: not ignorable.
std::string_view IgnorablePart(const WeightSource& source, std::string_view name);

inline bool IsIgnorableTensor(const WeightSource& source, std::string_view name) {
  return !IgnorablePart(source, name).empty();
}

}  // namespace tq

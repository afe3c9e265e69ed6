// Tensors that a checkpoint may carry although no forward pass of the text model reads them.
#pragma once

#include <string_view>

#include "weights/source.h"

namespace tq {

// By canonical name: rotary buffers, scales of quantized activations and caches, vision and audio
// parts, draft heads (mtp.*, and layers with an eh_proj of their own after the model's last).
bool IsIgnorableTensor(const WeightSource& source, std::string_view name);

}  // namespace tq

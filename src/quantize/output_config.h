// config.json and the shard index of a TurboQuant checkpoint, as the published loader expects them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "quantize/layer_bits.h"
#include "tensor/dtype.h"

namespace tq {

// source_config: text of the source's config.json. Keys of the source are kept except its own
// quantization and the part of its vision tower, which is not converted; top-level keys are sorted;
// indent 4. dtype: of the floats that are kept, when it is not the source's.
Result<std::string> TurboQuantConfig(const std::string& source_config,
                                     const QuantizeSettings& settings,
                                     const std::optional<DType>& dtype);

// model.safetensors.index.json. shard_of: (tensor name, file name).
std::string ShardIndex(std::vector<std::pair<std::string, std::string>> shard_of,
                       int64_t total_bytes, int64_t total_elements);

// "model.safetensors", or "model-00001-of-00003.safetensors".
std::string ShardName(size_t index, size_t count);

}  // namespace tq

// config.json -> the keys of a GGUF file that describe the model: the inverse of gguf_arch.h's
// readers.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/spec.h"
#include "weights/gguf_writer.h"

namespace tq {

// "llama", "qwen2", ... Errors: kUnsupported naming the model types that can be written.
Result<std::string> GgufArchitecture(const ModelSpec& model);

// Adds the keys of `architecture`. Returns the divisors of the inverse rope frequencies that go
// into rope_freqs.weight; empty: there are none. Errors: kUnsupported for a rope scaling without
// keys.
Result<std::vector<float>> AddGgufConfig(const ModelSpec& model, const Json& config,
                                         const std::string& architecture, GgufMetadata& out);

// "" when both compute the same from the same tensors, else what differs first: "layer 3: window".
std::string ModelDifference(const ModelSpec& a, const ModelSpec& b);

}  // namespace tq

// Files of token ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace tq {

// A JSON list of ids, or (name ends in .safetensors) an int32 or int64 tensor "tokens".
// Errors: kNotFound, kIo, kCorrupt, kInvalidArgument naming expected and found.
Result<std::vector<int32_t>> ReadTokenFile(const std::string& path);

}  // namespace tq

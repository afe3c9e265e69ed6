// How far the header of a weight file reaches, from its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tq {

// name ends in .safetensors or .gguf. The bytes that a reader of headers looks at; when that is
// more than `prefix` holds, it is only so many as are known to be needed: ask again with them.
// Errors: kCorrupt (no header that fits into the file), kUnsupported (another kind of file).
Result<int64_t> HeaderBytes(const std::string& name, std::span<const std::byte> prefix,
                            int64_t file_size);

// Bytes [first, second) behind the header of a file that has one, whose values are part of the
// model's description: factors of a rope in GGUF. Errors: as ParseGguf.
Result<std::vector<std::pair<int64_t, int64_t>>> DescribingValues(const std::string& path);

}  // namespace tq

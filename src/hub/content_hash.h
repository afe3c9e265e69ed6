// The hashes by which the Hub names contents: SHA-256 of large files, and git's SHA-1 of a blob
// ("blob LENGTH\0" + content) of small ones.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace tq {

enum class ContentHash : uint8_t { kSha256, kGitBlob };

// Small letters, hexadecimal. Errors: kIo.
Result<std::string> HashFile(const std::string& path, ContentHash kind);

}  // namespace tq

// What `doctor` says about a checkpoint: files whole, architecture known, tensors there, texts
// usable, size. Reads headers and documents, and a few megabytes for the speed of the disk.
#pragma once

#include <cstdint>
#include <string>

#include "apps/finding.h"

namespace tq {

// available_bytes: memory that it may take.
void CheckModel(const std::string& path, int64_t available_bytes, Findings& findings);

}  // namespace tq

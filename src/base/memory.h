// Memory of the machine.
#pragma once

#include <cstdint>

namespace tq {

// Bytes that new allocations can get without swapping: what the system calls available, or what the
// control group of the process leaves, whichever is less. 0: not known here.
int64_t AvailableMemoryBytes();

}  // namespace tq

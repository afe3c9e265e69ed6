// Memory of the machine and of the control group (version 1 or 2) of the process.
#pragma once

#include <cstdint>

namespace tq {

// In GB of 10^9 bytes, for messages.
inline double Gb(int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

struct SystemMemory {  // bytes; -1: not known here
  int64_t total = -1;
  int64_t available = -1;        // as AvailableMemoryBytes
  int64_t container_limit = -1;  // -1 also without one that is below the total
  int64_t swap_total = -1;
  int64_t swap_free = -1;
};
SystemMemory ReadSystemMemory();

// Bytes that new allocations can get without swapping: what the system calls available, or what the
// control group of the process leaves, whichever is less. 0: not known here.
int64_t AvailableMemoryBytes();

// Bytes of this process that are in memory now. 0: not known here.
int64_t ResidentBytes();

// Gives freed memory that the C library keeps back to the system.
void ReturnFreeMemory();

}  // namespace tq

// What `doctor` says about this machine: processor, memory, disk, limits, a port. Reads only.
#pragma once

#include <cstdint>
#include <string>

#include "apps/finding.h"

namespace tq {

struct MachineFacts {
  int64_t available_bytes =
      0;  // memory that a model can take: the smaller of machine and container
};

// folder: of the model, or where one would go. port: 0 for none.
MachineFacts CheckMachine(const std::string& folder, int port, Findings& findings);

}  // namespace tq

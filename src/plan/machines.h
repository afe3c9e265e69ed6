// Machines that a plan can be made for: this one, and named ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/planner.h"

namespace tq {

// Its memory, or what its container may use; free memory as it is now.
Machine ThisMachine();

// Nodes of a machine whose memory is not equally near to all processors, with what each has free.
std::vector<int64_t> FreeBytesOfNodes();

struct NamedMachine {
  std::string_view name;
  std::string_view text;
  int64_t ram_bytes;
  int64_t usable_bytes;   // as it is set up; more after its limit was raised
  double read_bandwidth;  // bytes per second, as its maker says
};
std::vector<NamedMachine> KnownMachines();
// Errors: kInvalidArgument naming the known ones.
Result<NamedMachine> FindMachine(std::string_view name);
Machine MachineOf(const NamedMachine& named);

}  // namespace tq

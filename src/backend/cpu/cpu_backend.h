// The CPU backend: splits every op over the threads of its pool and calls the kernels of one
// instruction set (kernels/). Weights are copied into its own layout by Prepare.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace tq {

// Errors: kInvalidArgument (options.isa is not one of CpuIsas()).
Result<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options);
std::vector<std::string> CpuIsas();

}  // namespace tq

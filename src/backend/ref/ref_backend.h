// The ref backend: every op as docs/numerics.md states it, scalar and without cleverness. It is the
// oracle for all other backends and the document of their maths; not for speed. Weights are copied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace tq {

Result<std::unique_ptr<Backend>> MakeRefBackend(const BackendOptions& options);
std::vector<std::string> RefIsas();

}  // namespace tq

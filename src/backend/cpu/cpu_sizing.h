// The sizes of CpuBackend, without its memory and threads (backend/sizing.h).
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/isa.h"

namespace tq {

std::unique_ptr<Backend> MakeCpuSizing(Isa isa, ActivationMode activations, int num_threads);

}  // namespace tq

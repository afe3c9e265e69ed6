// Appending keys and values to pages on the CPU: rotation and codes of packed formats, split over
// threads.
#pragma once

#include <span>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/kv_rows.h"
#include "backend/ops.h"
#include "base/threads.h"

namespace tq {

// work: one for each thread of the pool.
void CpuKvAppend(const PackedKernels& kernels, const KvAppendArgs& args, ThreadPool& pool,
                 std::span<KvRowWork> work);

}  // namespace tq

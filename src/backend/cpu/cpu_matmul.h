// The two phases of a grouped matmul on the CPU: prepare the activations of every matrix (rotate,
// quantize), then stream all weights once, rows split over the threads by bytes. A thread that is
// done early helps the others.
#pragma once

#include <span>

#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/int_matmul.h"
#include "base/task_queue.h"
#include "backend/ops.h"
#include "base/threads.h"
#include "tensor/scratch.h"

namespace tq {

struct CpuKernels {
  const FloatOps& floats;
  const IntOps& ints;
};

// cursors: one per thread of the pool.
void CpuMatMul(const CpuKernels& kernels, std::span<const MatMulArgs> args, ThreadPool& pool,
               std::span<RunCursor> cursors, Scratch& scratch);

// Takes the scratch memory that CpuMatMul would, for its time. For plans.
void ReserveMatMul(const CpuKernels& kernels, std::span<const MatMulArgs> args, int num_threads,
                   Scratch& scratch);

}  // namespace tq

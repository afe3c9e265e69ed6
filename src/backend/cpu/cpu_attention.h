// The ops of the CPU backend that read KV pages: how they are split over threads.
#pragma once

#include "backend/cpu/kernels/float_ops.h"
#include "backend/ops.h"
#include "backend/ops_index.h"
#include "base/threads.h"
#include "tensor/scratch.h"

namespace tq {

void CpuAttention(const PackedKernels& kernels, const AttentionArgs& args, ThreadPool& pool,
                  Scratch& scratch);
void CpuIndexSelect(const FloatOps& floats, const IndexSelectArgs& args, ThreadPool& pool,
                    Scratch& scratch);

// Take the scratch memory that these would, for its time. For plans. integers: as in PackedKernels.
void ReserveAttention(const FloatOps& floats, bool integers, const AttentionArgs& args,
                      int num_threads, Scratch& scratch);
void ReserveIndexSelect(const IndexSelectArgs& args, int num_threads, Scratch& scratch);

}  // namespace tq

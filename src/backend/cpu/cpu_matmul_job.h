// One matrix of a matmul call with its prepared activations, in the layouts of int_matmul.h.
#pragma once

#include <span>

#include "backend/cpu/cpu_matmul.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/ops.h"
#include "tensor/scratch.h"

namespace tq {

// Tokens of one wide call. It reads their activations once per kWideTiles tiles and in the order of
// memory, so the second cache serves.
inline constexpr int64_t kWideTokensAtOnce = 512;

// One matrix of the call with its prepared activations: int8 passes or f32 rows.
struct MatMulJob {
  const MatMulArgs* args;
  const CpuWeight* weight;
  // integer()
  int8_t* q;
  float* sx;
  int32_t* corr;
  int32_t* qsum;    // grids
  int32_t omitted;  // OmittedInteger
  bool wide;        // for IntOps::matmul_wide
  // otherwise
  float* x;
  int64_t ldx;
  bool is_prepared;  // by an earlier job, whose arrays these are

  int64_t num_groups() const { return weight->num_groups(); }
  bool is_grid() const { return weight->layout() == CpuWeight::Layout::kGridTiles; }
  int64_t num_blocks() const {
    return (weight->cols() + weight->activation_block() - 1) / weight->activation_block();
  }
};

// What one thread needs while it works.
struct MatMulWorkspace {
  float* row;              // [K]
  int8_t* codes;           // [K]
  float* scales;           // [K / 16]
  float* panel;            // [K][16], null when no matrix needs one
  float* scales_and_sums;  // IntMatMulArgs::scale_work, null when no matrix needs it
};

// Arrays come from scratch. earlier: the jobs before this one, whose activations it may share.
MatMulJob MakeMatMulJob(const MatMulArgs& args, std::span<const MatMulJob> earlier,
                        const IntOps& ints, Scratch& scratch);
// Rotates, quantizes and stores one token.
void PrepareToken(const MatMulJob& job, const CpuKernels& kernels, int64_t token,
                  const MatMulWorkspace& work);

}  // namespace tq

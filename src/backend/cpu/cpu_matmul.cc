#include "backend/cpu/cpu_matmul.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_matmul_job.h"
#include "backend/cpu/cpu_matmul_pieces.h"
#include "codec/codec.h"

namespace tq {
namespace {

// Activations of this many bytes are used by all tiles before the next ones: they stay in the
// cache.
constexpr int64_t kActivationBytes = int64_t{1} << 20;

// Columns of 16 rows that are decoded at a time: a multiple of every format's block.
constexpr int64_t kPanelColumns = 256;

bool NeedsPanel(const CpuWeight& weight) {
  return !weight.integer() && weight.layout() != CpuWeight::Layout::kFloatTiles;
}

int64_t TokensAtOnce(const MatMulJob& job) {
  if (job.wide) return kWideTokensAtOnce;
  const int64_t bytes = job.weight->cols() * (job.weight->integer() ? 1 : 4);
  return std::clamp<int64_t>(kActivationBytes / bytes, 32, 512) / kMaxTokensPerPass *
         kMaxTokensPerPass;
}

void IntegerTiles(const MatMulJob& job, const IntOps& ints, int64_t tile_begin, int64_t tile_end,
                  const MatMulWorkspace& work) {
  const CpuWeight& weight = *job.weight;
  const int64_t at_once = TokensAtOnce(job);
  for (int64_t token = 0; token < job.args->num_tokens; token += at_once) {
    const IntMatMulArgs args{
        .codes = weight.codes(),
        .scales = weight.scales(),
        .grid = job.is_grid() ? &weight.grid_scales() : nullptr,
        .integers = weight.integers().integers.data(),
        .step = weight.integers().step,
        .layout_bits = weight.layout_bits(),
        .group = weight.group(),
        .num_rows = weight.rows(),
        .num_cols = weight.cols(),
        .block = weight.activation_block(),
        .q = job.q + (job.wide ? token / kWideTokens * WidePassBytes(weight.cols())
                               : token * weight.cols()),
        .sx = job.sx + token * job.num_blocks(),
        .corr = job.corr + token * job.num_groups(),
        .qsum = job.qsum + token * job.num_groups(),
        .scale_work = work.scales_and_sums,
        .num_tokens = std::min(at_once, job.args->num_tokens - token),
        .bias = job.args->bias,
        .y = job.args->y + token * weight.rows(),
        .ldy = weight.rows(),
    };
    (job.wide ? ints.matmul_wide : ints.matmul)(args, tile_begin, tile_end);
  }
}

void FloatTiles(const MatMulJob& job, const FloatOps& floats, int64_t tile_begin,
                int64_t tile_end) {
  const CpuWeight& weight = *job.weight;
  const int64_t at_once = TokensAtOnce(job);
  for (int64_t token = 0; token < job.args->num_tokens; token += at_once) {
    const FloatMatMulArgs args{
        .type = weight.float_type(),
        .tiles = weight.tiles(),
        .num_rows = weight.rows(),
        .num_cols = weight.cols(),
        .x = job.x + token * job.ldx,
        .ldx = job.ldx,
        .num_tokens = std::min(at_once, job.args->num_tokens - token),
        .bias = job.args->bias,
        .y = job.args->y + token * weight.rows(),
        .ldy = weight.rows(),
    };
    floats.float_matmul(args, tile_begin, tile_end);
  }
}

// 16 rows of a coded matrix as an f32 tile.
void DecodePanel(const MatMulJob& job, const CpuKernels& kernels, int64_t tile,
                 const MatMulWorkspace& work) {
  const CpuWeight& weight = *job.weight;
  const int64_t cols = weight.cols();
  if (weight.layout() == CpuWeight::Layout::kCodeTiles) {
    kernels.ints.decode_tile(weight.codes() + tile * CodeTileBytes(weight.layout_bits(), cols),
                             weight.scales() + tile * job.num_groups() * kTileRows,
                             weight.codebook(), weight.layout_bits(), weight.format().group, cols,
                             work.panel);
    return;
  }
  alignas(64) float rows[kTileRows * kPanelColumns];
  const int64_t first = tile * kTileRows;
  const int64_t num_rows = std::min(kTileRows, weight.rows() - first);
  std::fill(rows + num_rows * kPanelColumns, rows + kTileRows * kPanelColumns, 0.0f);
  for (int64_t col = 0; col < cols; col += kPanelColumns) {
    const int64_t n = std::min(kPanelColumns, cols - col);
    for (int64_t r = 0; r < num_rows; ++r)
      DecodeRow(weight.blocks(), first + r, col, n, rows + r * kPanelColumns);
    kernels.floats.transpose16(rows, kPanelColumns, n, work.panel + col * kTileRows);
  }
}

void PanelTiles(const MatMulJob& job, const CpuKernels& kernels, int64_t tile_begin,
                int64_t tile_end, const MatMulWorkspace& work) {
  const int64_t rows = job.weight->rows();
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    DecodePanel(job, kernels, tile, work);
    const int64_t first = tile * kTileRows;
    const FloatMatMulArgs args{
        .type = FloatType::kF32,
        .tiles = reinterpret_cast<const std::byte*>(work.panel),
        .num_rows = std::min(kTileRows, rows - first),
        .num_cols = job.weight->cols(),
        .x = job.x,
        .ldx = job.ldx,
        .num_tokens = job.args->num_tokens,
        .bias = job.args->bias == nullptr ? nullptr : job.args->bias + first,
        .y = job.args->y + first,
        .ldy = rows,
    };
    kernels.floats.float_matmul(args, 0, 1);
  }
}

void ComputeTiles(const MatMulJob& job, const CpuKernels& kernels, int64_t tile_begin,
                  int64_t tile_end, const MatMulWorkspace& work) {
  if (job.weight->integer()) {
    IntegerTiles(job, kernels.ints, tile_begin, tile_end, work);
  } else if (NeedsPanel(*job.weight)) {
    PanelTiles(job, kernels, tile_begin, tile_end, work);
  } else {
    FloatTiles(job, kernels.floats, tile_begin, tile_end);
  }
}

std::span<MatMulWorkspace> MakeWorkspaces(std::span<const MatMulJob> jobs, int num_threads,
                                          Scratch& scratch) {
  int64_t row_cols = 0;
  int64_t panel_cols = 0;
  int64_t int_floats = 0;
  for (const MatMulJob& job : jobs) {
    row_cols = std::max(row_cols, job.weight->cols());
    if (NeedsPanel(*job.weight)) panel_cols = std::max(panel_cols, job.weight->cols());
    if (job.wide) {
      int_floats =
          std::max(int_floats, WideWorkFloats(std::min(kWideTokensAtOnce, job.args->num_tokens)));
    } else if (job.is_grid()) {
      int_floats = std::max(int_floats, GridWorkFloats(job.num_groups()));
    }
  }
  MatMulWorkspace* workspaces = scratch.Alloc<MatMulWorkspace>(static_cast<size_t>(num_threads));
  for (int i = 0; i < num_threads; ++i) {
    workspaces[i].row = scratch.Alloc<float>(static_cast<size_t>(row_cols));
    workspaces[i].codes = scratch.Alloc<int8_t>(static_cast<size_t>(row_cols));
    workspaces[i].scales = scratch.Alloc<float>(static_cast<size_t>(row_cols / 16 + 1));
    workspaces[i].panel = panel_cols == 0
                              ? nullptr
                              : scratch.Alloc<float>(static_cast<size_t>(panel_cols * kTileRows));
    workspaces[i].scales_and_sums =
        int_floats == 0 ? nullptr : scratch.Alloc<float>(static_cast<size_t>(int_floats));
  }
  return {workspaces, static_cast<size_t>(num_threads)};
}

struct MatMulLayout {
  std::span<const MatMulJob> jobs;
  std::span<MatMulWorkspace> workspaces;
  int64_t num_rows = 0;  // of activations to prepare
};

MatMulLayout LayOut(const CpuKernels& kernels, std::span<const MatMulArgs> args, int num_threads,
                    Scratch& scratch) {
  MatMulLayout out;
  MatMulJob* all_jobs = scratch.Alloc<MatMulJob>(args.size());
  size_t num_jobs = 0;
  for (const MatMulArgs& one : args) {
    if (one.num_tokens == 0) continue;
    all_jobs[num_jobs] = MakeMatMulJob(one, {all_jobs, num_jobs}, kernels.ints, scratch);
    if (!all_jobs[num_jobs].is_prepared) out.num_rows += one.num_tokens;
    ++num_jobs;
  }
  out.jobs = {all_jobs, num_jobs};
  out.workspaces = MakeWorkspaces(out.jobs, num_threads, scratch);
  return out;
}

}  // namespace

void ReserveMatMul(const CpuKernels& kernels, std::span<const MatMulArgs> args, int num_threads,
                   Scratch& scratch) {
  const ScratchScope scope(scratch);
  LayOut(kernels, args, num_threads, scratch);
}

void CpuMatMul(const CpuKernels& kernels, std::span<const MatMulArgs> args, ThreadPool& pool,
               std::span<RunCursor> cursors, Scratch& scratch) {
  const ScratchScope scope(scratch);
  const MatMulLayout layout = LayOut(kernels, args, pool.num_threads(), scratch);
  const std::span<const MatMulJob> jobs = layout.jobs;
  const std::span<MatMulWorkspace> workspaces = layout.workspaces;

  // A single row is prepared right here: ParallelFor starts no thread for one item.
  pool.ParallelFor(layout.num_rows, 1, [&](int64_t begin, int64_t end, int thread) {
    int64_t first = 0;
    for (const MatMulJob& job : jobs) {
      if (job.is_prepared) continue;
      const int64_t last = first + job.args->num_tokens;
      for (int64_t row = std::max(begin, first); row < std::min(end, last); ++row) {
        PrepareToken(job, kernels, row - first, workspaces[thread]);
      }
      first = last;
    }
  });
  const MatMulPieces pieces(jobs, pool.num_threads());
  RunQueue queue(cursors, pieces.pieces_per_run());
  pool.ParallelFor(pool.num_threads(), 1, [&](int64_t, int64_t, int thread) {
    for (int64_t piece = queue.Next(thread); piece >= 0; piece = queue.Next(thread)) {
      pieces.ForTilesOf(piece, [&](const MatMulJob& job, int64_t tile_begin, int64_t tile_end) {
        ComputeTiles(job, kernels, tile_begin, tile_end, workspaces[thread]);
      });
    }
  });
}

}  // namespace tq

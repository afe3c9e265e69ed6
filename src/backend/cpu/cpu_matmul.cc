#include "backend/cpu/cpu_matmul.h"

#include <algorithm>
#include <cstring>

#include "codec/codec.h"

namespace tq {
namespace {

// Activations of this many bytes are used by all tiles before the next ones: they stay in the
// cache.
constexpr int64_t kActivationBytes = int64_t{1} << 20;

// Columns of 16 rows that are decoded at a time: a multiple of every format's block.
constexpr int64_t kPanelColumns = 256;

// One matrix of the call with its prepared activations: int8 passes or f32 rows.
struct Job {
  const MatMulArgs* args;
  const CpuWeight* weight;
  // integer()
  int8_t* q;
  float* sx;
  int32_t* corr;
  int32_t* qsum;    // grids
  int32_t omitted;  // OmittedInteger
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
struct Workspace {
  float* row;     // [K]
  int8_t* codes;  // [K]
  float* scales;  // [K / 16]
  float* panel;   // [K][16], null when no matrix needs one
  float* grid;    // scales and mins of two tiles, null when no matrix is a grid
};

bool NeedsPanel(const CpuWeight& weight) {
  return !weight.integer() && weight.layout() != CpuWeight::Layout::kFloatTiles;
}

// What the kernel leaves out of every integer: the sums start with this times the sum of q.
int OmittedInteger(const CpuWeight& weight, const IntOps& ints) {
  if (weight.layout_bits() == 8) return weight.grid().offset + (ints.unsigned_bytes ? 0 : 128);
  const auto& integers = weight.integers().integers;
  if (!ints.unsigned_table) return 0;
  return std::min<int>(0, *std::min_element(integers.begin(), integers.end()));
}

// Both matrices see the same activations in the same form: experts of a stack, for a single token.
bool PrepareAlike(const Job& a, const Job& b) {
  const CpuWeight& v = *a.weight;
  const CpuWeight& w = *b.weight;
  if (a.args->x != b.args->x || a.args->num_tokens != b.args->num_tokens) return false;
  if (v.cols() != w.cols() || v.rotated() != w.rotated() || v.integer() != w.integer())
    return false;
  if (v.rotated() && v.signs() != w.signs()) return false;
  if (!v.integer()) return true;
  return a.is_grid() == b.is_grid() && v.group() == w.group() &&
         v.activation_block() == w.activation_block() && a.omitted == b.omitted;
}

// earlier: the jobs before this one.
Job MakeJob(const MatMulArgs& args, std::span<const Job> earlier, const IntOps& ints,
            Scratch& scratch) {
  Job job{};
  job.args = &args;
  job.weight = static_cast<const CpuWeight*>(args.weight);
  if (job.weight->integer()) job.omitted = OmittedInteger(*job.weight, ints);
  constexpr size_t kLookBack = 4;
  for (size_t i = earlier.size(); i > 0 && i + kLookBack > earlier.size(); --i) {
    const Job& other = earlier[i - 1];
    if (!PrepareAlike(other, job)) continue;
    Job same = other;
    same.args = job.args;
    same.weight = job.weight;
    same.is_prepared = true;
    return same;
  }
  const int64_t cols = job.weight->cols();
  if (job.weight->integer()) {
    job.q = scratch.Alloc<int8_t>(static_cast<size_t>(args.num_tokens * cols));
    job.sx = scratch.Alloc<float>(static_cast<size_t>(args.num_tokens * job.num_blocks()));
    job.corr = scratch.Alloc<int32_t>(static_cast<size_t>(args.num_tokens * job.num_groups()));
    if (job.is_grid()) {
      job.qsum = scratch.Alloc<int32_t>(static_cast<size_t>(args.num_tokens * job.num_groups()));
    }
  } else {
    job.ldx = (cols + 15) / 16 * 16;
    job.x = scratch.Alloc<float>(static_cast<size_t>(args.num_tokens * job.ldx));
  }
  return job;
}

// Where token `token` lives among the passes of up to 8 tokens.
struct Place {
  int64_t first;  // token of its pass
  int64_t token_in_pass;
  int64_t tokens_in_pass;
};

Place PlaceOf(int64_t token, int64_t num_tokens) {
  const int64_t first = token / kMaxTokensPerPass * kMaxTokensPerPass;
  return {first, token - first, std::min(kMaxTokensPerPass, num_tokens - first)};
}

// Spreads one token's codes, scales and group sums over its pass.
void PackToken(const Job& job, int64_t token, const int8_t* codes, const float* scales) {
  const CpuWeight& weight = *job.weight;
  const int64_t cols = weight.cols();
  const int64_t group = weight.group();
  const Place place = PlaceOf(token, job.args->num_tokens);
  int8_t* q = job.q + place.first * cols;
  if (q != codes) {
    for (int64_t k = 0; k < cols; k += 4) {
      std::memcpy(q + k * place.tokens_in_pass + place.token_in_pass * 4, codes + k, 4);
    }
  }
  float* sx = job.sx + place.first * job.num_blocks();
  for (int64_t b = 0; b < job.num_blocks(); ++b) {
    sx[b * place.tokens_in_pass + place.token_in_pass] = scales[b];
  }
  const int64_t at = place.first * job.num_groups() + place.token_in_pass;
  for (int64_t g = 0; g < job.num_groups(); ++g) {
    int32_t sum = 0;
    for (int64_t k = 0; k < group; ++k) sum += codes[g * group + k];
    job.corr[at + g * place.tokens_in_pass] = job.omitted * sum;
    if (job.is_grid()) job.qsum[at + g * place.tokens_in_pass] = sum;
  }
}

void PrepareToken(const Job& job, const CpuKernels& kernels, int64_t token, const Workspace& work) {
  const CpuWeight& weight = *job.weight;
  const int64_t cols = weight.cols();
  const float* x = job.args->x + token * cols;
  float* row = weight.integer() ? work.row : job.x + token * job.ldx;
  if (!weight.integer() || weight.rotated()) std::copy(x, x + cols, row);
  if (weight.rotated()) {
    kernels.floats.rotate_row(row, weight.signs(), cols, weight.hadamard().m,
                              weight.hadamard().pow2);
    x = row;
  }
  if (!weight.integer()) return;
  // A single token's pass has the order of the plain row.
  const bool alone = PlaceOf(token, job.args->num_tokens).tokens_in_pass == 1;
  int8_t* codes = alone ? job.q + token * cols : work.codes;
  float* scales = alone ? job.sx + token * job.num_blocks() : work.scales;
  kernels.floats.quantize_row(x, cols, weight.activation_block(), codes, scales);
  PackToken(job, token, codes, scales);
}

int64_t TokensAtOnce(const Job& job) {
  const int64_t bytes = job.weight->cols() * (job.weight->integer() ? 1 : 4);
  return std::clamp<int64_t>(kActivationBytes / bytes, 32, 512) / kMaxTokensPerPass *
         kMaxTokensPerPass;
}

void IntegerTiles(const Job& job, const IntOps& ints, int64_t tile_begin, int64_t tile_end,
                  const Workspace& work) {
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
        .q = job.q + token * weight.cols(),
        .sx = job.sx + token * job.num_blocks(),
        .corr = job.corr + token * job.num_groups(),
        .qsum = job.is_grid() ? job.qsum + token * job.num_groups() : nullptr,
        .scale_work = work.grid,
        .num_tokens = std::min(at_once, job.args->num_tokens - token),
        .bias = job.args->bias,
        .y = job.args->y + token * weight.rows(),
        .ldy = weight.rows(),
    };
    ints.matmul(args, tile_begin, tile_end);
  }
}

void FloatTiles(const Job& job, const FloatOps& floats, int64_t tile_begin, int64_t tile_end) {
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
void DecodePanel(const Job& job, const CpuKernels& kernels, int64_t tile, const Workspace& work) {
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

void PanelTiles(const Job& job, const CpuKernels& kernels, int64_t tile_begin, int64_t tile_end,
                const Workspace& work) {
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

// Share `share` of `num_shares` equal shares of all weight bytes, in whole tiles.
void ComputeShare(std::span<const Job> jobs, const CpuKernels& kernels, int64_t share,
                  int64_t num_shares, const Workspace& work) {
  int64_t total = 0;
  for (const Job& job : jobs) total += job.weight->bytes();
  const int64_t begin = total / num_shares * share;
  const int64_t end = share + 1 == num_shares ? total : total / num_shares * (share + 1);
  int64_t offset = 0;
  for (const Job& job : jobs) {
    // The tiles that start inside [begin, end).
    const int64_t tile_bytes = job.weight->tile_bytes();
    const auto first_tile_at = [&](int64_t position) {
      return std::clamp<int64_t>((position - offset + tile_bytes - 1) / tile_bytes, 0,
                                 job.weight->num_tiles());
    };
    const int64_t tile_begin = first_tile_at(begin);
    const int64_t tile_end = first_tile_at(end);
    offset += job.weight->bytes();
    if (tile_begin >= tile_end) continue;
    if (job.weight->integer()) {
      IntegerTiles(job, kernels.ints, tile_begin, tile_end, work);
    } else if (NeedsPanel(*job.weight)) {
      PanelTiles(job, kernels, tile_begin, tile_end, work);
    } else {
      FloatTiles(job, kernels.floats, tile_begin, tile_end);
    }
  }
}

std::span<Workspace> MakeWorkspaces(std::span<const Job> jobs, int num_threads, Scratch& scratch) {
  int64_t row_cols = 0;
  int64_t panel_cols = 0;
  int64_t grid_floats = 0;
  for (const Job& job : jobs) {
    row_cols = std::max(row_cols, job.weight->cols());
    if (NeedsPanel(*job.weight)) panel_cols = std::max(panel_cols, job.weight->cols());
    if (job.is_grid()) grid_floats = std::max(grid_floats, GridWorkFloats(job.num_groups()));
  }
  Workspace* workspaces = scratch.Alloc<Workspace>(static_cast<size_t>(num_threads));
  for (int i = 0; i < num_threads; ++i) {
    workspaces[i].row = scratch.Alloc<float>(static_cast<size_t>(row_cols));
    workspaces[i].codes = scratch.Alloc<int8_t>(static_cast<size_t>(row_cols));
    workspaces[i].scales = scratch.Alloc<float>(static_cast<size_t>(row_cols / 16 + 1));
    workspaces[i].panel = panel_cols == 0
                              ? nullptr
                              : scratch.Alloc<float>(static_cast<size_t>(panel_cols * kTileRows));
    workspaces[i].grid =
        grid_floats == 0 ? nullptr : scratch.Alloc<float>(static_cast<size_t>(grid_floats));
  }
  return {workspaces, static_cast<size_t>(num_threads)};
}

}  // namespace

void CpuMatMul(const CpuKernels& kernels, std::span<const MatMulArgs> args, ThreadPool& pool,
               Scratch& scratch) {
  const ScratchScope scope(scratch);
  Job* all_jobs = scratch.Alloc<Job>(args.size());
  size_t num_jobs = 0;
  int64_t num_rows = 0;  // of activations
  for (const MatMulArgs& one : args) {
    if (one.num_tokens == 0) continue;
    all_jobs[num_jobs] = MakeJob(one, {all_jobs, num_jobs}, kernels.ints, scratch);
    if (!all_jobs[num_jobs].is_prepared) num_rows += one.num_tokens;
    ++num_jobs;
  }
  const std::span<const Job> jobs(all_jobs, num_jobs);
  const std::span<Workspace> workspaces = MakeWorkspaces(jobs, pool.num_threads(), scratch);

  // A single row is prepared right here: ParallelFor starts no thread for one item.
  pool.ParallelFor(num_rows, 1, [&](int64_t begin, int64_t end, int thread) {
    int64_t first = 0;
    for (const Job& job : jobs) {
      if (job.is_prepared) continue;
      const int64_t last = first + job.args->num_tokens;
      for (int64_t row = std::max(begin, first); row < std::min(end, last); ++row) {
        PrepareToken(job, kernels, row - first, workspaces[thread]);
      }
      first = last;
    }
  });
  const int64_t num_shares = pool.num_threads();
  pool.ParallelFor(num_shares, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t share = begin; share < end; ++share) {
      ComputeShare(jobs, kernels, share, num_shares, workspaces[thread]);
    }
  });
}

}  // namespace tq

#include "backend/cpu/cpu_matmul_pieces.h"

#include <algorithm>

namespace tq {
namespace {

// So many that threads end together, and so few that finding a piece costs nothing.
constexpr int64_t kPieceBytes = int64_t{192} << 10;
constexpr int64_t kMaxPiecesPerRun = 64;

}  // namespace

MatMulPieces::MatMulPieces(std::span<const MatMulJob> jobs, int num_runs) : jobs_(jobs) {
  for (const MatMulJob& job : jobs) bytes_ += job.weight->bytes();
  if (num_runs > 1) {
    pieces_per_run_ = std::clamp<int64_t>(bytes_ / num_runs / kPieceBytes, 1, kMaxPiecesPerRun);
  }
  num_pieces_ = pieces_per_run_ * num_runs;
}

int64_t MatMulPieces::FirstTile(const MatMulJob& job, int64_t position) {
  // Wide passes take several tiles at a time.
  const int64_t grain = job.wide ? kWideTiles : 1;
  const int64_t grain_bytes = job.weight->tile_bytes() * grain;
  const int64_t first = (position + grain_bytes - 1) / grain_bytes * grain;
  return std::clamp<int64_t>(first, 0, job.weight->num_tiles());
}

}  // namespace tq

// How the weights of a matmul call are cut: a run of pieces to every thread, in the order of
// memory, each of about equal bytes and whole tiles.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/cpu_matmul_job.h"

namespace tq {

class MatMulPieces {
 public:
  MatMulPieces(std::span<const MatMulJob> jobs, int num_runs);

  int64_t pieces_per_run() const { return pieces_per_run_; }
  // body(job, tile_begin, tile_end) for what piece `piece` has of every job.
  template <typename Body>
  void ForTilesOf(int64_t piece, const Body& body) const {
    const int64_t from = BeginOf(piece), to = BeginOf(piece + 1);
    int64_t offset = 0;
    for (const MatMulJob& job : jobs_) {
      const int64_t next_offset = offset + job.weight->bytes();
      if (from < next_offset && to > offset) {
        const int64_t begin = FirstTile(job, from - offset), end = FirstTile(job, to - offset);
        if (begin < end) body(job, begin, end);
      }
      offset = next_offset;
    }
  }

 private:
  // Where a piece begins among the bytes of all matrices; one past the last: their number.
  int64_t BeginOf(int64_t piece) const {
    return piece == num_pieces_ ? bytes_ : bytes_ / num_pieces_ * piece;
  }
  // The first tile of a job that begins `position` or more of the job's bytes from its start.
  static int64_t FirstTile(const MatMulJob& job, int64_t position);

  std::span<const MatMulJob> jobs_;
  int64_t bytes_ = 0;
  int64_t pieces_per_run_ = 1;
  int64_t num_pieces_ = 1;
};

}  // namespace tq

// Ldlq: TurboQuant rows rounded so that the layer's *output* changes least, not the weights. With H
// the sum of x x^T over calibration inputs in the rotated basis, columns are rounded from last to
// first and each error is fed forward to the columns still to come, with the factors of H = M D
// M^T. Then scales and codes are refined under H. The file format and its readers are those of
// plain rounding. Method: docs/quality.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/threads.h"
#include "codec/turbo_quant_encode.h"

namespace tq {

struct LdlqOptions {
  double damping = 0.03;  // times the mean diagonal of H, added to its diagonal
  int descent_passes = 3;
};

// The damping for a sum over that many tokens: the fewer they are for its size, the less it says
// and the more it is drawn towards the identity. Requires: rows > 0.
double LdlqDamping(int64_t cols, int64_t rows);

// Buffers of one thread, reused from tile to tile.
struct LdlqScratch;

// One matrix. Immutable after construction: any number of threads may encode at once.
class Ldlq {
 public:
  static constexpr int64_t kTileRows = 32;

  // hessian [cols, cols]: sum of x x^T of the layer's inputs as they are (not rotated), symmetric,
  // finite; signs [cols]. Requires: cols % spec.group == 0, spec.group % 16 == 0.
  // Memory while it runs: 16 bytes per element of the Hessian; after that, 8.
  Ldlq(const TurboQuantSpec& spec, std::span<const float> signs, std::vector<float> hessian,
       const LdlqOptions& options, ThreadPool& pool);

  // As EncodeTurboQuantRow, for num_rows <= kTileRows rows [num_rows, cols] at once; what a row
  // becomes does not depend on its company.
  bool EncodeTile(const float* rows, int64_t num_rows, uint32_t* words, uint16_t* scales,
                  LdlqScratch& scratch) const;

 private:
  void Factor(double damping, ThreadPool& pool);
  bool LoadTile(const float* rows, int64_t num_rows, LdlqScratch& scratch) const;
  void Feedback(LdlqScratch& scratch) const;
  void ChooseScales(int64_t group, LdlqScratch& scratch) const;
  void UpdateErrors(LdlqScratch& scratch) const;
  void RefitScales(LdlqScratch& scratch) const;
  void Descend(LdlqScratch& scratch) const;
  template <typename Round>
  void SweepGroup(int64_t begin, float* values, float* errors, Round&& round) const;

  TurboQuantSpec spec_;
  LdlqOptions options_;
  std::vector<float> signs_;
  int64_t cols_;
  std::vector<float> hessian_;   // rotated, damped, mean diagonal 1
  std::vector<float> feedback_;  // M: unit lower triangle, row-major
};

// Row-major [cols][kTileRows]: a column of the tile is contiguous, so that rows are SIMD lanes.
struct LdlqScratch {
  std::vector<float> weights;   // rotated
  std::vector<float> values;    // what is to be rounded: weights and the errors fed to them
  std::vector<float> errors;    // weights - what the codes stand for
  std::vector<float> units;     // codebook values of the codes
  std::vector<float> gradient;  // hessian * errors
  std::vector<float> work;
  std::vector<uint8_t> codes;
  std::vector<float> scales;  // [groups][kTileRows]
  std::vector<float> row;
  std::vector<uint8_t> row_codes;
};

// h <- R h R^T with R = blockwise Hadamard * diag(signs). h [n, n] is symmetric.
void RotateHessian(std::span<float> h, std::span<const float> signs, ThreadPool& pool);

}  // namespace tq

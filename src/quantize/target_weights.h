// What a matrix should be when its inputs have changed: earlier matrices were rounded, so it sees x
// where it saw o, and should still give W o. The least squares answer is W + W K with
// K = (sum of (o - x) x^T) H^-1, H = the damped sum of x x^T. When its outputs are added to a
// residual that is d away from the original's, they should make up for that too, as far as x tells:
// another (sum of d x^T) H^-1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/threads.h"

namespace tq {

// The damped sum of x x^T, ready to be divided by.
class InputNormalizer {
 public:
  // squares [n, n]: sum of x x^T, symmetric. damping: times the mean diagonal, added to the
  // diagonal. Requires: n % 16 == 0.
  InputNormalizer(std::span<const float> squares, int64_t n, double damping, ThreadPool& pool);

  // cross [rows, n] <- cross H^-1; zeros when no input was ever anything but zero. Requires:
  // rows % 16 == 0.
  void Apply(std::vector<float>& cross, ThreadPool& pool) const;

 private:
  void Solve(double* x) const;

  int64_t n_;
  bool usable_ = false;
  // L of H = L L^T, and what the products want.
  std::vector<double> lower_;
  std::vector<double> negated_;
  std::vector<double> negated_transposed_;
};

// rows [num_rows, n] += rows K. Requires: num_rows % 16 == 0. Thread: any.
void ApplyCorrection(const std::vector<float>& k, int64_t n, float* rows, int64_t num_rows,
                     std::vector<float>& scratch);

}  // namespace tq

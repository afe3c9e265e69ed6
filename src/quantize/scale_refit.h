// The scales of a row as a least squares problem: with the codes fixed, the squared error under H
// is quadratic in the scales. One small system per lane (row of a tile).
#pragma once

#include <cstdint>
#include <vector>

namespace tq {

class ScaleSystem {
 public:
  ScaleSystem(int64_t groups, int64_t lanes);

  // Arrays are [columns of a group][lanes]. Coefficient (g, h), g >= h: units of g times the
  // product of H with the units of h.
  void AddCoefficient(int64_t g, int64_t h, const float* units, const float* products,
                      int64_t columns);
  // Right side of group g: its units times the product of H with the errors.
  void AddTarget(int64_t g, const float* units, const float* gradient, int64_t columns);

  // scales [groups][lanes] += the solution, rounded to f16. A scale that would fall below half or
  // rise above twice its value (a near singular system) keeps its value.
  void Solve(std::vector<float>& scales);

 private:
  bool SolveLane(int64_t lane, std::vector<double>& lower, std::vector<double>& x) const;

  int64_t groups_;
  int64_t lanes_;
  std::vector<float> coefficients_;  // [groups][groups][lanes], g >= h
  std::vector<float> targets_;       // [groups][lanes]
};

}  // namespace tq

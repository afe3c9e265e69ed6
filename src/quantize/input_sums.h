// InputSums: second moments of what enters a matrix, summed over tokens: of the inputs themselves
// and of other values with them. Same bits for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.h"

namespace tq {

class InputSums {
 public:
  // Columns come in whole panels.
  static constexpr int64_t kPanel = 16;

  explicit InputSums(int64_t cols);

  // x [num_tokens, cols]: adds x x^T.
  void Add(const float* x, int64_t num_tokens, ThreadPool& pool);
  // sums [other_cols, cols] += other x^T, with the x of the last Add. other [num_tokens,
  // other_cols].
  void AddCross(const float* other, int64_t other_cols, std::vector<float>& sums, ThreadPool& pool);
  // Makes the first sums the whole symmetric matrix; nothing is added afterwards.
  void Finish();

  int64_t cols() const { return cols_; }
  int64_t rows() const { return rows_; }                          // tokens that were added
  const std::vector<float>& squares() const { return squares_; }  // until Finish: lower triangle

 private:
  int64_t cols_;
  int64_t rows_ = 0;
  std::vector<float> squares_;
  int64_t last_tokens_ = 0;
  std::vector<float> panels_;  // [cols / kPanel][tokens][kPanel]
  std::vector<float> other_panels_;
};

}  // namespace tq

#include "quantize/target_weights.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "quantize/input_sums.h"

namespace tq {
namespace {

std::vector<float> Gaussian(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(n));
  for (float& x : out) x = normal(random);
  return out;
}

constexpr int64_t kCols = 80;  // more than one block of the solver
constexpr int64_t kOther = 32;
constexpr int64_t kTokens = 300;

// other = x B^T exactly.
struct Problem {
  std::vector<float> x = Gaussian(kTokens * kCols, 1);
  std::vector<float> b = Gaussian(kOther * kCols, 2);
  std::vector<float> other = std::vector<float>(static_cast<size_t>(kTokens * kOther));
  Problem() {
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t r = 0; r < kOther; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < kCols; ++c) {
          sum += static_cast<double>(x[static_cast<size_t>(t * kCols + c)]) *
                 b[static_cast<size_t>(r * kCols + c)];
        }
        other[static_cast<size_t>(t * kOther + r)] = static_cast<float>(sum);
      }
    }
  }
};

TEST(InputSums, AddsSquaresAndCrossProductsPieceByPiece) {
  const Problem problem;
  ThreadPool pool(3);
  InputSums sums(kCols);
  std::vector<float> cross(static_cast<size_t>(kOther * kCols));
  for (int64_t t = 0; t < kTokens; t += 100) {
    sums.Add(problem.x.data() + t * kCols, 100, pool);
    sums.AddCross(problem.other.data() + t * kOther, kOther, cross, pool);
  }
  sums.Add(problem.x.data(), 0, pool);
  sums.AddCross(problem.other.data(), kOther, cross, pool);
  sums.Finish();
  EXPECT_EQ(sums.rows(), kTokens);
  for (const auto& [i, j] : {std::pair<int64_t, int64_t>{0, 79}, {79, 0}, {17, 33}, {5, 5}}) {
    double square = 0;
    double product = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      const double xj = problem.x[static_cast<size_t>(t * kCols + j)];
      square += problem.x[static_cast<size_t>(t * kCols + i)] * xj;
      product += problem.other[static_cast<size_t>(t * kOther + i % kOther)] * xj;
    }
    EXPECT_NEAR(sums.squares()[static_cast<size_t>(i * kCols + j)], square, 1e-3);
    EXPECT_NEAR(cross[static_cast<size_t>(i % kOther * kCols + j)], product, 1e-2);
  }
}

TEST(InputNormalizer, FindsTheMatrixThatMadeTheOutputs) {
  const Problem problem;
  ThreadPool pool(2);
  InputSums sums(kCols);
  std::vector<float> cross(static_cast<size_t>(kOther * kCols));
  sums.Add(problem.x.data(), kTokens, pool);
  sums.AddCross(problem.other.data(), kOther, cross, pool);
  sums.Finish();
  std::vector<float> damped = cross;
  InputNormalizer(sums.squares(), kCols, 1e-9, pool).Apply(cross, pool);
  for (size_t i = 0; i < cross.size(); ++i) ASSERT_NEAR(cross[i], problem.b[i], 1e-4) << i;
  InputNormalizer(sums.squares(), kCols, 1e3, pool).Apply(damped, pool);
  for (size_t i = 0; i < damped.size(); ++i) ASSERT_LT(std::fabs(damped[i]), 0.01f) << i;
}

TEST(InputNormalizer, SaysNothingWithoutInputs) {
  ThreadPool pool(1);
  const std::vector<float> zeros(static_cast<size_t>(kCols * kCols));
  std::vector<float> cross = Gaussian(kOther * kCols, 3);
  InputNormalizer(zeros, kCols, 0.03, pool).Apply(cross, pool);
  for (const float value : cross) ASSERT_EQ(value, 0.0f);
}

TEST(ApplyCorrection, AddsTheRowsTimesTheMatrix) {
  const std::vector<float> k = Gaussian(kCols * kCols, 4);
  const std::vector<float> before = Gaussian(16 * kCols, 5);
  std::vector<float> rows = before;
  std::vector<float> scratch;
  ApplyCorrection(k, kCols, rows.data(), 16, scratch);
  for (const auto& [r, c] : {std::pair<int64_t, int64_t>{0, 0}, {15, 79}, {7, 64}}) {
    double sum = before[static_cast<size_t>(r * kCols + c)];
    for (int64_t i = 0; i < kCols; ++i) {
      sum += static_cast<double>(before[static_cast<size_t>(r * kCols + i)]) *
             k[static_cast<size_t>(i * kCols + c)];
    }
    EXPECT_NEAR(rows[static_cast<size_t>(r * kCols + c)], sum, 1e-4);
  }
}

}  // namespace
}  // namespace tq

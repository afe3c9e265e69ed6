#include "eval/perplexity.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "eval/bandwidth.h"

namespace tq {
namespace {

TEST(JoinNonBlankLines, DropsBlankOnesAndJoinsByTwoNewlines) {
  EXPECT_EQ(JoinNonBlankLines(" = A = \n\n \t\nb\r\nc"), " = A = \n\nb\n\nc");
  EXPECT_EQ(JoinNonBlankLines("\n \n"), "");
  EXPECT_EQ(JoinNonBlankLines(""), "");
}

TEST(NegativeLogLikelihood, IsMinusLogSoftmax) {
  const std::vector<float> equal(8, 3.0f);
  EXPECT_NEAR(NegativeLogLikelihood(equal, 5), std::log(8.0), 1e-12);
  const std::vector<float> large = {1000.0f, 999.0f, -1000.0f};
  EXPECT_NEAR(NegativeLogLikelihood(large, 0), std::log1p(std::exp(-1.0)), 1e-12);
  EXPECT_NEAR(NegativeLogLikelihood(large, 2), 2000.0 + std::log1p(std::exp(-1.0)), 1e-9);
}

TEST(Bandwidth, IsPlausible) {
  const double bytes_per_second = MeasureReadBandwidth(1);
  EXPECT_GT(bytes_per_second, 1e8);
  EXPECT_LT(bytes_per_second, 1e13);
}

}  // namespace
}  // namespace tq

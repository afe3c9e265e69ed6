#include "eval/perplexity.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "eval/bandwidth.h"
#include "eval/divergence.h"

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

TEST(CountChunks, TakesWholeOnes) {
  PerplexityOptions options;
  options.seq_len = 4;
  options.num_samples = 3;
  EXPECT_EQ(*CountChunks(11, options), 2);
  EXPECT_EQ(*CountChunks(99, options), 3);
  EXPECT_EQ(CountChunks(3, options).status().code(), StatusCode::kInvalidArgument);
}

TEST(KlDivergence, IsThatOfTheDistributions) {
  const std::vector<float> p = {std::log(0.5f), std::log(0.25f), std::log(0.25f)};
  // A shift of all logits changes nothing.
  const std::vector<float> q = {std::log(0.25f) + 90, std::log(0.5f) + 90, std::log(0.25f) + 90};
  EXPECT_NEAR(KlDivergence(p, q), 0.5 * std::log(2.0) - 0.25 * std::log(2.0), 1e-5);
  EXPECT_NEAR(KlDivergence(p, p), 0, 1e-12);
}

TEST(Bandwidth, IsPlausible) {
  const double bytes_per_second = MeasureReadBandwidth(1);
  EXPECT_GT(bytes_per_second, 1e8);
  EXPECT_LT(bytes_per_second, 1e13);
}

TEST(Bandwidth, AnyNumberOfThreads) {
  for (const int threads : {1, 2, 300}) {  // more threads than a pass has pieces
    ThreadPool pool(threads);
    Result<BandwidthMeter> meter = BandwidthMeter::Make(int64_t{48} << 20, pool);
    ASSERT_TRUE(meter.ok());
    EXPECT_GT(meter.value().Rate(pool, 0, 0), 1e7);
    EXPECT_GT(meter.value().Rate(pool, 0, 1), 0);
  }
}

}  // namespace
}  // namespace tq

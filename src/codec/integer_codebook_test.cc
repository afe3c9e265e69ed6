#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "codec/gaussian.h"
#include "codec/turbo_quant.h"

namespace tq {
namespace {

std::vector<int> Integers(const IntegerCodebook& fit) {
  return {fit.integers.begin(), fit.integers.begin() + fit.entries};
}

TEST(Gaussian, Cdf) {
  EXPECT_EQ(GaussianCdf(0.0), 0.5);
  EXPECT_NEAR(GaussianCdf(1.0), 0.841344746068542949, 1e-15);
  EXPECT_NEAR(GaussianCdf(-1.0), 0.158655253931457051, 1e-15);
  EXPECT_NEAR(GaussianCdf(3.0), 0.998650101968369905, 1e-15);
  EXPECT_NEAR(GaussianCdf(-6.0), 9.86587645037698141e-10, 1e-15);
  EXPECT_EQ(GaussianCdf(40.0), 1.0);
  EXPECT_EQ(GaussianCdf(-40.0), 0.0);
}

TEST(IntegerCodebook, PublishedCodebooks) {
  const struct {
    int entries;
    std::vector<int> positive;
    double step;
  } rows[] = {{2, {1}, 0.7978515625},
              {3, {0, 1}, 1.223633},
              {4, {3, 10}, 0.151056},
              {8, {7, 22, 39, 62}, 0.034549},
              {16, {3, 9, 15, 22, 29, 37, 48, 63}, 0.043354}};
  for (const auto& row : rows) {
    const IntegerCodebook fit = FitIntegerCodebook(LloydMaxCodebook(row.entries).stored);
    ASSERT_EQ(fit.entries, row.entries);
    const std::vector<int> integers = Integers(fit);
    const size_t first = row.entries / 2;
    EXPECT_EQ(std::vector<int>(integers.begin() + first, integers.end()), row.positive);
    for (size_t i = 0; i < integers.size(); ++i) {
      EXPECT_EQ(integers[i], -integers[integers.size() - 1 - i]);
    }
    EXPECT_NEAR(fit.step, row.step, 6e-7) << row.entries;
  }
}

TEST(IntegerCodebook, LegacyFourEntryTernary) {
  const float c = LloydMaxCodebook(3).stored[2];
  const IntegerCodebook fit = FitIntegerCodebook(std::vector<float>{-c, 0, c, c});
  EXPECT_EQ(Integers(fit), (std::vector<int>{-1, 0, 1, 1}));
  EXPECT_NEAR(fit.step, c, 1e-7);
}

TEST(IntegerCodebook, AsymmetricCodebooksStayClose) {
  for (int seed = 0; seed < 20; ++seed) {
    std::vector<float> codebook;
    float value = -2.0f - 0.05f * static_cast<float>(seed);
    for (int i = 0; i < 16; ++i) {
      value += 0.1f + 0.03f * static_cast<float>((i * 7 + seed * 5) % 11);
      codebook.push_back(value);
    }
    const IntegerCodebook fit = FitIntegerCodebook(codebook);
    float largest = 0;
    for (const float entry : codebook) largest = std::max(largest, std::fabs(entry));
    for (int i = 0; i < 16; ++i) {
      EXPECT_LE(std::abs(fit.integers[i]), 63);
      EXPECT_NEAR(fit.step * static_cast<float>(fit.integers[i]), codebook[i], largest / 63);
    }
  }
}

TEST(IntegerCodebook, EveryBitPatternOfAFileIsHandled) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FitIntegerCodebook(std::vector<float>{0, 0, 0, 0}).step, 0.0f);
  EXPECT_EQ(FitIntegerCodebook(std::vector<float>{-1, nan, 1}).step, 0.0f);
  EXPECT_EQ(FitIntegerCodebook(std::vector<float>{-inf, 0, 1, inf}).step, 0.0f);
  const IntegerCodebook descending = FitIntegerCodebook(std::vector<float>{2, 1, -1, -2});
  EXPECT_EQ(Integers(descending), (std::vector<int>{2, 1, -1, -2}));
  const IntegerCodebook far =
      FitIntegerCodebook(std::vector<float>{60000, 65504});  // weightless cell
  EXPECT_NEAR(far.step * static_cast<float>(far.integers[0]), 60000.0f, 1.0f);
  EXPECT_LE(far.integers[1], 63);
  const IntegerCodebook tiny = FitIntegerCodebook(std::vector<float>{-6e-8f, 6e-8f});
  EXPECT_EQ(Integers(tiny), (std::vector<int>{-1, 1}));
}

}  // namespace
}  // namespace tq

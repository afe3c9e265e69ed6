#include "codec/scale_search.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "codec/turbo_quant.h"
#include "codec/turbo_quant_encode.h"
#include "tensor/half.h"

namespace tq {
namespace {

std::vector<float> Gaussian(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}

// Squared error of writing x, relative to its squares.
double RelativeError(std::span<const float> x, const TurboQuantSpec& spec) {
  std::vector<uint32_t> words(
      static_cast<size_t>(TurboQuantWords(spec.codebook_entries, static_cast<int64_t>(x.size()))));
  const auto group = static_cast<size_t>(spec.group);
  std::vector<uint16_t> scales(x.size() / group);
  TurboQuantScratch scratch;
  EXPECT_TRUE(EncodeTurboQuantRow(spec, x, {}, words.data(), scales.data(), scratch));
  const std::vector<float>& codebook = LloydMaxCodebook(spec.codebook_entries).stored;
  double error = 0;
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = codebook[scratch.codes[i]] * F16ToF32(scales[i / group]);
    error += (x[i] - value) * (x[i] - value);
    total += double{x[i]} * x[i];
  }
  return error / total;
}

TurboQuantSpec Spec(int entries, int group, bool search) {
  return {.codebook_entries = entries, .group = group, .rotate = false, .search_scale = search};
}

// The distortions were found by an independent program, see docs/quality.md.
TEST(ScaleSearch, ReachesTheKnownDistortionOfGaussians) {
  const std::vector<float> x = Gaussian(size_t{1} << 20, 1);
  const struct {
    int entries;
    int group;
    double rms;
    double searched;
  } cases[] = {{4, 64, .1144, .1110}, {8, 64, .0334, .0295}, {16, 64, .0092, .0070},
               {4, 32, .1115, .1052}, {8, 32, .0325, .0261}, {16, 32, .0089, .0062}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << c.entries << " entries, groups of " << c.group);
    EXPECT_NEAR(RelativeError(x, Spec(c.entries, c.group, false)) / c.rms, 1, .01);
    EXPECT_NEAR(RelativeError(x, Spec(c.entries, c.group, true)) / c.searched, 1, .01);
  }
}

TEST(ScaleSearch, NeverLosesToTheRms) {
  const std::vector<float> x = Gaussian(64 * 256, 2);
  for (const int entries : {2, 3, 4, 8, 16}) {
    for (size_t i = 0; i < x.size(); i += 64) {
      const std::span<const float> group = std::span(x).subspan(i, 64);
      // The RMS is one of the candidates up to its rounding.
      EXPECT_LE(RelativeError(group, Spec(entries, 64, true)),
                RelativeError(group, Spec(entries, 64, false)) * 1.001);
    }
  }
}

TEST(ScaleSearch, ExtremesStayUsable) {
  std::vector<float> x(32, 0.0f);
  EXPECT_GT(SearchTurboQuantScale(8, x, 1e-7f), 0);
  x.assign(32, 65000.0f);
  EXPECT_LT(SearchTurboQuantScale(8, x, 65000.0f) & 0x7FFF, 0x7C00);
  x.assign(32, 1e6f);
  EXPECT_EQ(SearchTurboQuantScale(8, x, 1e6f), 0x7C00);
  x.assign(32, NAN);
  EXPECT_EQ(SearchTurboQuantScale(8, x, NAN) & 0x7C00, 0x7C00);
}

}  // namespace
}  // namespace tq

#include "base/json.h"
#include "codec/hadamard.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "codec/test_tensors.h"

namespace tq {
namespace {

std::vector<float> RandomVector(int64_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = static_cast<float>(generator()) / 2147483648.0f - 1.0f;
  return x;
}

// The definition: entry (r, c) of M_m (x) Sylvester(pow2), in f64.
double EntryOf(const HadamardBlock& block, int64_t r, int64_t c) {
  const int walsh = std::popcount(static_cast<uint64_t>(r % block.pow2 & c % block.pow2)) % 2;
  const int m = block.m == 1 ? 1
                             : HadamardEntry(block.m, static_cast<int>(r / block.pow2),
                                             static_cast<int>(c / block.pow2));
  return (walsh != 0 ? -m : m) / std::sqrt(static_cast<double>(block.size));
}

TEST(Hadamard, SmallMatricesAreOrthogonal) {
  for (const int m : {12, 20, 28}) {
    for (int a = 0; a < m; ++a) {
      for (int b = 0; b < m; ++b) {
        int dot = 0;
        for (int c = 0; c < m; ++c) dot += HadamardEntry(m, a, c) * HadamardEntry(m, b, c);
        EXPECT_EQ(dot, a == b ? m : 0) << m << ": " << a << ", " << b;
      }
    }
  }
  int asymmetric = 0;
  for (int a = 0; a < 12; ++a) {
    for (int b = 0; b < 12; ++b) asymmetric += HadamardEntry(12, a, b) != HadamardEntry(12, b, a);
  }
  EXPECT_EQ(asymmetric, 0);
}

TEST(Hadamard, BlockRule) {
  const std::pair<int64_t, int64_t> expected[] = {
      {2880, 320},   {576, 192},   {6656, 512},   {17408, 1024}, {11008, 256},
      {13824, 1536}, {18944, 512}, {19968, 1536}, {9728, 512},   {1408, 128},
      {2816, 256},   {4304, 16},   {72, 24},      {1, 1},        {3, 1},
      {7, 1},        {420, 28},    {60, 20},      {36, 12},      {14336, 14336}};
  for (const auto& [dim, size] : expected) EXPECT_EQ(HadamardBlockFor(dim).size, size) << dim;
  for (const int64_t direct :
       {64,   80,   96,   112,  128,  160,  192,  256,  512,  640,  768,   896,   1024,
        1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240, 12288, 14336}) {
    EXPECT_EQ(HadamardBlockFor(direct).size, direct);
  }
  EXPECT_EQ(HadamardBlockFor(0).size, 1);
}

TEST(Hadamard, BlockRuleIsTheLargestSupportedDivisor) {
  for (int64_t dim = 1; dim <= 3000; ++dim) {
    int64_t best = 1;
    for (const int64_t m : {1, 12, 20, 28}) {
      for (int64_t n = m; n <= dim; n *= 2) {
        if (dim % n == 0) best = std::max(best, n);
      }
    }
    const HadamardBlock block = HadamardBlockFor(dim);
    ASSERT_EQ(block.size, best) << dim;
    ASSERT_EQ(block.m * block.pow2, block.size) << dim;
  }
}

TEST(Hadamard, BlockSizesOfTheReference) {
  const auto text = ReadTextFile(TQ_TEST_DATA "/turboquant/vectors.json");
  ASSERT_TRUE(text.ok());
  const auto json = ParseJson(text.value(), "vectors.json");
  ASSERT_TRUE(json.ok());
  for (const auto& [dim, size] : (*json)["block_size"].items()) {
    EXPECT_EQ(HadamardBlockFor(std::stoll(dim)).size, size.get<int64_t>()) << dim;
  }
}

TEST(Hadamard, MatchesTheDefinition) {
  for (const int64_t dim : {1, 2, 8, 12, 16, 20, 24, 28, 32, 40, 56, 72, 80, 96, 128, 224, 288}) {
    const std::vector<float> x = RandomVector(dim, 7);
    std::vector<float> y = x;
    HadamardForward(y);
    const HadamardBlock block = HadamardBlockFor(dim);
    for (int64_t i = 0; i < dim; ++i) {
      const int64_t first = i / block.size * block.size;
      double sum = 0.0;
      for (int64_t c = 0; c < block.size; ++c) {
        sum += EntryOf(block, i - first, c) * x[static_cast<size_t>(first + c)];
      }
      EXPECT_NEAR(y[static_cast<size_t>(i)], sum, 2e-6) << dim << " at " << i;
    }
  }
}

TEST(Hadamard, InverseUndoesForward) {
  for (const int64_t dim : {1,   2,   5,   12,  20,  28,  40,  56,   64,   80,  96,
                            112, 160, 224, 288, 320, 352, 576, 2880, 3584, 4096}) {
    const std::vector<float> x = RandomVector(dim, 11);
    std::vector<float> y = x;
    HadamardForward(y);
    HadamardInverse(y);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i], 4e-6) << dim << " at " << i;
  }
}

// docs/numerics.md, steps 2-4, one operation at a time: the fast loops may not change a bit.
TEST(Hadamard, KeepsTheNormativeOrder) {
  for (const int64_t dim : {2,   4,   8,  16, 32,  64,  128, 256, 12,  24,  48,  96,
                            192, 384, 20, 80, 320, 640, 28,  112, 448, 896, 288, 2880}) {
    const std::vector<float> x = RandomVector(dim, 13);
    const HadamardBlock block = HadamardBlockFor(dim);
    std::vector<float> expected = x;
    for (int64_t row = 0; row < dim; row += block.pow2) {
      float* v = expected.data() + row;
      for (int64_t h = 1; h < block.pow2; h *= 2) {
        for (int64_t i = 0; i < block.pow2; ++i) {
          if ((i & h) != 0) continue;
          const float a = v[i], b = v[i + h];
          v[i] = a + b;
          v[i + h] = a - b;
        }
      }
    }
    if (block.m > 1) {
      const std::vector<float> in = expected;
      for (int64_t i = 0; i < dim; ++i) {
        const int64_t first = i / block.size * block.size;
        const int j = static_cast<int>((i - first) / block.pow2);
        float sum = 0.0f;
        for (int c = 0; c < block.m; ++c) {
          const float term = in[static_cast<size_t>(first + c * block.pow2 + i % block.pow2)];
          const float signed_term = HadamardEntry(block.m, j, c) > 0 ? term : -term;
          sum = c == 0 ? signed_term : sum + signed_term;
        }
        expected[static_cast<size_t>(i)] = sum;
      }
    }
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block.size)));
    for (float& value : expected) value *= scale;
    std::vector<float> y = x;
    HadamardForward(y);
    EXPECT_EQ(y, expected) << dim;
  }
}

TEST(Hadamard, EveryReferenceVectorBitForBit) {
  const TestTensors vectors(TQ_TEST_DATA "/turboquant/vectors.safetensors");
  int compared = 0;
  for (const auto& [name, tensor] : vectors.all()) {
    const auto parts = SplitName(name);
    if (parts[0] != "rot" || parts[2] != "x") continue;
    const size_t width = std::stoul(parts[1]);
    const std::vector<float> signs = TurboQuantSigns(42, static_cast<int64_t>(width));
    const std::vector<float> expected = vectors["rot/" + parts[1] + "/y"].Floats();
    std::vector<float> x = tensor.Floats();
    for (size_t row = 0; row < x.size(); row += width) {
      for (size_t i = 0; i < width; ++i) x[row + i] *= signs[i];
      HadamardForward(std::span(x).subspan(row, width));
    }
    EXPECT_EQ(x, expected) << name;
    ++compared;
  }
  EXPECT_GT(compared, 25);
}

}  // namespace
}  // namespace tq

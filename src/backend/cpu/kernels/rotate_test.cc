#include <gtest/gtest.h>

#include "backend/cpu/kernels/float_reference.h"
#include "backend/ops.h"
#include "codec/hadamard.h"

namespace tq {
namespace {

using reference::Random;

std::vector<float> Signs(int64_t n) {
  std::vector<float> signs = Random(11, n);
  for (float& sign : signs) sign = sign < 0.0f ? -1.0f : 1.0f;
  return signs;
}

std::vector<float> Expected(std::vector<float> x, const std::vector<float>& signs) {
  const int64_t n = static_cast<int64_t>(x.size());
  const HadamardBlock block = HadamardBlockFor(n);
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] * signs[i];
  for (int64_t h = 1; h < block.pow2; h *= 2) {
    for (int64_t i = 0; i < n; ++i) {
      if ((i & h) != 0) continue;  // rows start at multiples of pow2, a multiple of 2 h
      const float a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  }
  if (block.m > 1) {
    const std::vector<float> in = x;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t base = i / block.size * block.size;
      const int row = static_cast<int>((i - base) / block.pow2);
      const int64_t column = i % block.pow2;
      float sum = 0.0f;
      for (int c = 0; c < block.m; ++c) {
        const float term = in[base + c * block.pow2 + column];
        const float signed_term = HadamardEntry(block.m, row, c) > 0 ? term : -term;
        sum = c == 0 ? signed_term : sum + signed_term;
      }
      x[i] = sum;
    }
  }
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block.size)));
  for (float& value : x) value = value * scale;
  return x;
}

TEST(RotateRow, EveryIsaGivesTheBitsOfTheRule) {
  for (const Isa isa : DetectIsas()) {
    for (const int64_t n :
         {1,   2,   3,   4,    6,    8,    12,   20,   24,   28,   36,   40,   48,    56,
          64,  80,  96,  112,  128,  136,  160,  192,  224,  256,  320,  384,  448,   512,
          640, 896, 960, 1024, 1536, 2048, 2560, 2880, 3072, 4096, 5120, 9728, 11008, 14336}) {
      const std::vector<float> signs = Signs(n);
      std::vector<float> x = Random(12, n);
      const std::vector<float> expected = Expected(x, signs);
      const HadamardBlock block = HadamardBlockFor(n);
      GetFloatOps(isa).rotate_row(x.data(), signs.data(), n, block.m, block.pow2);
      EXPECT_EQ(reference::FirstDifference(x, expected), -1) << IsaName(isa) << " " << n;
    }
  }
}

TEST(RotateRow, AgreesWithTheCodec) {
  const int64_t n = 2560;
  const std::vector<float> signs(n, 1.0f);
  std::vector<float> expected = Random(13, n);
  const std::vector<float> x = expected;
  HadamardForward(expected);
  const HadamardBlock block = HadamardBlockFor(n);
  for (const Isa isa : DetectIsas()) {
    std::vector<float> y = x;
    GetFloatOps(isa).rotate_row(y.data(), signs.data(), n, block.m, block.pow2);
    EXPECT_EQ(reference::FirstDifference(y, expected), -1) << IsaName(isa);
  }
}

TEST(QuantizeRow, EveryIsaGivesTheCodesOfTheRule) {
  for (const Isa isa : DetectIsas()) {
    for (const int64_t n : {1, 15, 16, 33, 64, 256, 300, 515}) {
      for (const int64_t block : {32, 64, 256}) {
        std::vector<float> x = Random(14, n, 3.0f);
        if (n > 256) std::fill(x.begin(), x.begin() + 256, 0.0f);
        std::vector<int8_t> q(static_cast<size_t>(n), 99);
        std::vector<float> sx(static_cast<size_t>((n + block - 1) / block), -1.0f);
        GetFloatOps(isa).quantize_row(x.data(), n, block, q.data(), sx.data());
        for (int64_t i = 0; i < n; ++i) {
          const int64_t begin = i / block * block;
          float max = 0.0f;
          for (int64_t k = begin; k < std::min(n, begin + block); ++k) {
            max = std::max(max, std::fabs(x[k]));
          }
          ASSERT_EQ(sx[i / block], max < kMinActivation ? 0.0f : max / 127.0f);
          ASSERT_EQ(q[i], max < kMinActivation ? 0.0f : std::nearbyint(x[i] * (127.0f / max)))
              << IsaName(isa);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tq

#include <gtest/gtest.h>

#include "backend/cpu/kernels/float_reference.h"

namespace tq {
namespace {

using reference::FirstDifference;
using reference::Random;

constexpr int64_t kLengths[] = {1, 3, 7, 16, 31, 64, 130, 1000};

// Arguments over the whole range of Exp, its limits included.
std::vector<float> Gates(int64_t n) {
  std::vector<float> x = Random(21, n, 4.0f);
  const float special[] = {0.0f,   -0.0f,   88.37626f, 88.4f, -88.4f, -87.33654f, -87.3366f,
                           200.0f, -200.0f, 1e-30f,    44.0f, -44.0f, 1e30f,      -1e30f};
  for (size_t i = 0; i < std::size(special) && i * 3 < x.size(); ++i) x[i * 3] = special[i];
  return x;
}

TEST(Elementwise, EveryIsaGivesTheBitsOfTheScalarFunctions) {
  for (const Isa isa : DetectIsas()) {
    const FloatOps& ops = GetFloatOps(isa);
    for (const int64_t n : kLengths) {
      const std::vector<float> gate = Gates(n), up = Random(22, n);
      std::vector<float> silu(up.size()), gelu = gate, add = up, cap = gate;
      ops.glu({Activation::kSilu, gate.data(), up.data(), silu.data(), n}, 0, n);
      ops.glu({Activation::kGeluTanh, gelu.data(), up.data(), gelu.data(), n}, 0, n);  // in place
      ops.add(gate.data(), add.data(), n);
      ops.softcap(cap.data(), 30.0f, n);
      for (int64_t i = 0; i < n; ++i) {
        const float expected[] = {Silu(gate[i]) * up[i], GeluTanh(gate[i]) * up[i], up[i] + gate[i],
                                  30.0f * Tanh(gate[i] / 30.0f)};
        const float actual[] = {silu[i], gelu[i], add[i], cap[i]};
        ASSERT_EQ(FirstDifference(expected, actual, 4), -1)
            << IsaName(isa) << " x = " << gate[i] << " i = " << i << " of " << n;
      }
    }
  }
}

TEST(RmsNormRow, EveryIsaGivesTheBitsOfTheRule) {
  for (const Isa isa : DetectIsas()) {
    for (const int64_t n : {1, 15, 64, 100, 255, 256, 257, 700, 1024, 2561}) {
      for (uint64_t seed = 40; seed < 60; ++seed) {  // many: the root hides most changes of the sum
        const std::vector<float> x = Random(seed, n, 2.0f), w = Random(24, n);
        const bool plus_one = seed % 2 == 1;
        std::vector<float> out = x;  // in place
        GetFloatOps(isa).rms_norm_row(out.data(), w.data(), plus_one, 1e-6f, n, out.data());
        EXPECT_EQ(FirstDifference(out, reference::RmsNorm(x, w, plus_one, 1e-6f)), -1)
            << IsaName(isa) << " " << n;
      }
    }
  }
}

TEST(RopeHead, EveryIsaGivesTheBitsOfTheRule) {
  for (const Isa isa : DetectIsas()) {
    for (const int64_t rotary_dim : {2, 12, 24, 40, 64, 128}) {
      const int64_t half = rotary_dim / 2;
      const std::vector<float> x = Random(25, rotary_dim + 5);
      const std::vector<float> c = Random(26, half), s = Random(27, half);
      std::vector<float> expected = x, y = x;
      for (int64_t j = 0; j < half; ++j) {
        expected[j] = std::fma(x[j], c[j], -(x[j + half] * s[j]));
        expected[j + half] = std::fma(x[j + half], c[j], x[j] * s[j]);
      }
      GetFloatOps(isa).rope_head(y.data(), rotary_dim, c.data(), s.data());
      EXPECT_EQ(FirstDifference(y, expected), -1) << IsaName(isa) << " " << rotary_dim;
    }
  }
}

}  // namespace
}  // namespace tq

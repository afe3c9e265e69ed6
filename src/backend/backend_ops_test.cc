// The op matrix of what works row by row or element by element.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/op_matrix.h"
#include "base/math.h"

namespace tq {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(OpsMatrix, RmsNorm) {
  for (const int64_t n : {1, 15, 128, 255, 256, 257, 2560}) {
    for (const bool plus_one : {false, true}) {
      for (const int64_t rows : {1, 9}) {
        const std::vector<float> x = RandomFloats(rows * n, 1);
        const std::vector<float> w = RandomFloats(n, 2);
        ExpectSameBits("rms norm n=" + std::to_string(n), [&](Backend& backend) {
          std::vector<float> out = x;  // in place
          backend.RmsNorm({out.data(), w.data(), plus_one, 1e-6f, out.data(), rows, n});
          return out;
        });
      }
    }
  }
}

TEST(OpsMatrix, RmsNormWithRowsOfWeightsOrNone) {
  constexpr int64_t kRows = 6;
  constexpr int64_t kN = 70;
  const std::vector<float> x = RandomFloats(kRows * kN, 1);
  const std::vector<float> w = RandomFloats(3 * kN, 2);
  const auto norm = [&](Backend& backend, const float* weights, int64_t w_rows) {
    std::vector<float> out(x.size());
    backend.RmsNorm({x.data(), weights, false, 1e-6f, out.data(), kRows, kN, w_rows});
    return out;
  };
  const std::vector<float> bare =
      ExpectSameBits("no weight", [&](Backend& backend) { return norm(backend, nullptr, 1); });
  const std::vector<float> rows =
      ExpectSameBits("3 rows", [&](Backend& backend) { return norm(backend, w.data(), 3); });
  for (int64_t i = 0; i < kRows * kN; ++i) ASSERT_EQ(rows[i], bare[i] * w[i % (3 * kN)]);
}

TEST(OpsMatrix, LayerNorm) {
  for (const int64_t n : {1, 17, 256, 1000}) {
    constexpr int64_t kRows = 5;
    std::vector<float> x = RandomFloats(kRows * n, 1);
    for (float& value : x) value = value * 3.0f + 2.0f;
    const std::vector<float> w = RandomFloats(n, 2);
    const std::vector<float> b = RandomFloats(n, 3);
    const std::vector<float> y = ExpectSameBits("layer norm", [&](Backend& backend) {
      std::vector<float> out = x;  // in place
      backend.LayerNorm({out.data(), w.data(), b.data(), 1e-5f, out.data(), kRows, n});
      return out;
    });
    for (int64_t row = 0; row < kRows; ++row) {
      const float* v = x.data() + row * n;
      double mean = 0;
      double variance = 0;
      for (int64_t i = 0; i < n; ++i) mean += v[i] / static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i) variance += (v[i] - mean) * (v[i] - mean);
      const double r = 1 / std::sqrt(variance / static_cast<double>(n) + 1e-5);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(y[row * n + i], (v[i] - mean) * r * w[i] + b[i], 2e-5);
      }
    }
  }
}

TEST(OpsMatrix, Rope) {
  constexpr int64_t kTokens = 5;
  constexpr int kHeads = 3;
  constexpr int kHeadDim = 96;
  for (const int rotary_dim : {2, 10, 64, 96}) {
    for (const bool interleaved : {false, true}) {
      for (const int offset : {0, kHeadDim - rotary_dim}) {
        const int half = rotary_dim / 2;
        const std::vector<float> x = RandomFloats(kTokens * kHeads * kHeadDim, 1);
        const std::vector<float> c = RandomFloats(kTokens * half, 2);
        const std::vector<float> s = RandomFloats(kTokens * half, 3);
        const std::vector<float> y = ExpectSameBits("rope", [&](Backend& backend) {
          std::vector<float> out = x;
          backend.Rope({out.data(), kTokens, kHeads, kHeadDim, rotary_dim, c.data(), s.data(),
                        offset, interleaved});
          return out;
        });
        std::vector<float> expected = x;
        for (int64_t row = 0; row < kTokens * kHeads; ++row) {
          for (int j = 0; j < half; ++j) {
            const int64_t first = row * kHeadDim + offset + (interleaved ? 2 * j : j);
            const int64_t second = first + (interleaved ? 1 : half);
            const int64_t angle = row / kHeads * half + j;
            expected[first] = std::fma(x[first], c[angle], -(x[second] * s[angle]));
            expected[second] = std::fma(x[second], c[angle], x[first] * s[angle]);
          }
        }
        EXPECT_EQ(FirstDifferentBits(y, expected), -1) << rotary_dim << " " << interleaved;
      }
    }
  }
}

float Expected(const GluArgs& args, float g, float u) {
  switch (args.activation) {
    case Activation::kSilu:
      return Silu(g) * u;
    case Activation::kGeluTanh:
      return GeluTanh(g) * u;
    case Activation::kSigmoid:
      return Sigmoid(g) * u;
    case Activation::kSoftplus:
      return Softplus(g) * u;
    case Activation::kClampedSilu:
      g = std::min(g, args.limit);
      u = std::max(std::min(u, args.limit), -args.limit);
      return (u + 1.0f) * (g * Sigmoid(args.alpha * g));
    case Activation::kSitu:
      if (args.limit != 0.0f) u = args.limit * Tanh(u / args.limit);
      return ((args.alpha * Tanh(g / args.alpha)) * Sigmoid(g)) * u;
  }
  return 0.0f;
}

TEST(OpsMatrix, Glu) {
  const struct {
    Activation activation;
    float alpha;
    float limit;
  } cases[] = {{Activation::kSilu, 0, 0},      {Activation::kGeluTanh, 0, 0},
               {Activation::kSigmoid, 0, 0},   {Activation::kSoftplus, 0, 0},
               {Activation::kSitu, 1.5f, 0},   {Activation::kClampedSilu, 1.702f, 0.75f},
               {Activation::kSitu, 3.0f, 2.0f}};
  for (const int64_t n : {1, 7, 16, 1000, 40000}) {
    std::vector<float> gate = RandomFloats(n, 1);
    std::vector<float> up = RandomFloats(n, 2);
    const float special[] = {-200.0f, 200.0f, 0.0f, -0.0f, 88.5f, -87.4f, 1e-30f, -1e30f};
    for (size_t i = 0; i < std::size(special) && i * 3 < gate.size(); ++i) {
      gate[i * 3] = special[i];
      up[gate.size() - 1 - i * 2] = special[i] * 0.01f;
    }
    for (const auto& one : cases) {
      for (const bool over_up : {false, true}) {
        GluArgs args{one.activation, nullptr, nullptr, nullptr, n, one.alpha, one.limit};
        const std::vector<float> y = ExpectSameBits("glu", [&](Backend& backend) {
          std::vector<float> g = gate;
          std::vector<float> u = up;
          args.gate = g.data();
          args.up = u.data();
          args.out = over_up ? u.data() : g.data();  // in place
          backend.Glu(args);
          return over_up ? u : g;
        });
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], Expected(args, gate[i], up[i])) << i;
      }
    }
  }
}

TEST(OpsMatrix, Map) {
  for (const MapFn fn :
       {MapFn::kIdentity, MapFn::kSigmoid, MapFn::kSoftplus, MapFn::kSilu, MapFn::kRelu2}) {
    for (const int64_t n : {1, 30, 64, 5000}) {
      for (const bool all : {false, true}) {
        constexpr int64_t kRows = 3;
        const int64_t stride = n + 5;
        std::vector<float> x = RandomFloats(kRows * stride, 1);
        x[0] = -0.0f;
        const std::vector<float> vectors = RandomFloats(3 * n, 2);
        MapArgs args{.x = x.data(), .x_stride = stride, .out = nullptr, .num_rows = kRows, .n = n};
        args.fn = fn;
        if (all) {
          args.bias = vectors.data();
          args.pre = vectors.data() + n;
          args.post = vectors.data() + 2 * n;
          args.scale = 1.7f;
          args.low = 0.0f;
          args.high = 0.9f;
        }
        const std::vector<float> y = ExpectSameBits("map", [&](Backend& backend) {
          std::vector<float> out(static_cast<size_t>(kRows * n));
          args.out = out.data();
          backend.Map(args);
          return out;
        });
        for (int64_t i = 0; i < kRows * n; ++i) {
          const int64_t c = i % n;
          double v = x[i / n * stride + c];
          if (all) v = (v + args.bias[c]) * args.pre[c];
          if (fn == MapFn::kSigmoid) v = 1 / (1 + std::exp(-v));
          if (fn == MapFn::kSoftplus) v = std::log1p(std::exp(v));
          if (fn == MapFn::kSilu) v = v / (1 + std::exp(-v));
          if (fn == MapFn::kRelu2) v = v > 0 ? v * v : 0;
          if (all) v = std::min(std::max(v * args.post[c] * 1.7, 0.0), 0.9);
          ASSERT_NEAR(y[i], v, 1e-5 * (1 + std::fabs(v)));
        }
      }
    }
  }
}

TEST(OpsMatrix, MapInPlace) {
  const std::vector<float> x = RandomFloats(4000, 1);
  ExpectSameBits("map in place", [&](Backend& backend) {
    std::vector<float> out = x;
    backend.Map({.x = out.data(),
                 .x_stride = 40,
                 .out = out.data(),
                 .num_rows = 100,
                 .n = 40,
                 .fn = MapFn::kSoftplus,
                 .high = kInfinity});
    return out;
  });
}

TEST(OpsMatrix, Rows) {
  constexpr int64_t kRows = 40;
  constexpr int64_t kN = 700;
  const std::vector<float> x = RandomFloats(kRows * kN, 1);
  const std::vector<float> factors = RandomFloats(kRows, 2);
  const std::vector<float> scaled = ExpectSameBits("scale rows", [&](Backend& backend) {
    std::vector<float> out = x;
    backend.ScaleRows({out.data(), factors.data(), out.data(), kRows, kN});
    return out;
  });
  std::vector<int32_t> index;
  for (int64_t i = 0; i < 2 * kRows; ++i) index.push_back(static_cast<int32_t>(i * 7 % kRows));
  const std::vector<float> gathered = ExpectSameBits("copy rows", [&](Backend& backend) {
    std::vector<float> out(2 * kRows * 50, -1.0f);  // columns 100..140 of rows, into rows of 50
    backend.CopyRows({x.data() + 100, kN, out.data(), 50, 2 * kRows, 40, index.data()});
    return out;
  });
  for (int64_t i = 0; i < kRows * kN; ++i) ASSERT_EQ(scaled[i], x[i] * factors[i / kN]);
  for (int64_t i = 0; i < 2 * kRows * 50; ++i) {
    ASSERT_EQ(gathered[i], i % 50 < 40 ? x[index[i / 50] * kN + 100 + i % 50] : -1.0f);
  }
}

TEST(OpsMatrix, AddSoftcap) {
  for (const int64_t n : {1, 7, 16, 1000, 40000}) {
    const std::vector<float> a = RandomFloats(n, 1);
    const std::vector<float> b = RandomFloats(n, 2);
    ExpectSameBits("add", [&](Backend& backend) {
      std::vector<float> out = a;
      backend.Add({b.data(), out.data(), n});
      return out;
    });
    ExpectSameBits("softcap", [&](Backend& backend) {
      std::vector<float> out = a;
      backend.Softcap({out.data(), 30.0f, n});
      return out;
    });
  }
}

}  // namespace
}  // namespace tq

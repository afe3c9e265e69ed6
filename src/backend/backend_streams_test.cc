// Weighted sums of rows: experts and residual streams.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "backend/op_matrix.h"

namespace tq {
namespace {

constexpr int64_t kLengths[] = {1, 19, 64, 300, 1100};

TEST(MoeCombine, BitsAndValues) {
  for (const int64_t n : kLengths) {
    constexpr int64_t kTokens = 7;
    constexpr int kTopK = 3;
    const std::vector<float> y = RandomFloats(10 * n, 1);
    const std::vector<float> weights = RandomFloats(kTokens * kTopK, 2);
    std::vector<int32_t> rows;
    for (int32_t i = 0; i < kTokens * kTopK; ++i) rows.push_back(i * 7 % 10);
    const std::vector<float> out = ExpectSameBits("combine", [&](Backend& backend) {
      std::vector<float> result(static_cast<size_t>(kTokens * n), -1.0f);
      backend.MoeCombine({y.data(), rows.data(), weights.data(), result.data(), kTokens, kTopK, n});
      return result;
    });
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t e = t * kTopK; e < (t + 1) * kTopK; ++e)
          sum += weights[e] * y[rows[e] * n + i];
        ASSERT_NEAR(out[t * n + i], sum, 1e-5);
      }
    }
  }
}

TEST(ResidualMix, BitsAndValues) {
  for (const int64_t n : kLengths) {
    for (const size_t count : {1, 5, 64}) {
      constexpr int64_t kTokens = 3;
      std::vector<std::vector<float>> candidates;
      std::vector<const float*> pointers;
      for (size_t c = 0; c < count; ++c) {
        candidates.push_back(RandomFloats(kTokens * n, static_cast<uint32_t>(c + 1)));
      }
      for (const std::vector<float>& one : candidates) pointers.push_back(one.data());
      std::vector<float> omega = RandomFloats(n, 100);
      for (float& value : omega) value /= std::sqrt(static_cast<float>(n));
      const std::vector<float> out = ExpectSameBits("mix", [&](Backend& backend) {
        std::vector<float> result(static_cast<size_t>(kTokens * n));
        backend.ResidualMix({pointers, omega.data(), 1e-6f, result.data(), kTokens, n});
        return result;
      });
      for (int64_t t = 0; t < kTokens; ++t) {
        std::vector<double> p;
        double total = 0;
        for (const float* x : pointers) {
          double squares = 0;
          double dot = 0;
          for (int64_t i = 0; i < n; ++i) {
            squares += double{x[t * n + i]} * x[t * n + i];
            dot += double{x[t * n + i]} * omega[i];
          }
          p.push_back(std::exp(dot / std::sqrt(squares / static_cast<double>(n) + 1e-6)));
          total += p.back();
        }
        for (int64_t i = 0; i < n; ++i) {
          double sum = 0;
          for (size_t c = 0; c < count; ++c) sum += p[c] / total * pointers[c][t * n + i];
          ASSERT_NEAR(out[t * n + i], sum, 1e-5);
        }
      }
    }
  }
}

TEST(Streams, MeanInjectGate) {
  for (const int64_t n : kLengths) {
    constexpr int64_t kTokens = 5;
    constexpr int kStreams = 3;
    const std::vector<float> a = RandomFloats(kTokens * kStreams * n, 1);
    std::vector<float> b = RandomFloats(kTokens * kStreams * n, 2);
    std::fill_n(b.begin(), n, 0.0f);  // a gate of 0
    const std::vector<float> y = RandomFloats(kTokens * n, 3);
    const std::vector<float> gain = RandomFloats(kTokens * kStreams, 4);
    const std::vector<float> mean = ExpectSameBits("mean", [&](Backend& backend) {
      std::vector<float> out(y.size());
      backend.StreamMean({a.data(), b.data(), out.data(), kTokens, kStreams, n});
      return out;
    });
    const std::vector<float> injected = ExpectSameBits("inject", [&](Backend& backend) {
      std::vector<float> out = a;
      backend.StreamInject({gain.data(), y.data(), out.data(), kTokens, kStreams, n});
      return out;
    });
    const std::vector<float> gated = ExpectSameBits("gate", [&](Backend& backend) {
      std::vector<float> out(a.size());
      backend.StreamGate({a.data(), b.data(), y.data(), out.data(), kTokens, kStreams, n});
      return out;
    });
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t s = t * kStreams; s < (t + 1) * kStreams; ++s) {
        double dot = 0;
        for (int64_t i = s * n; i < (s + 1) * n; ++i) dot += double{a[i]} * b[i];
        const double g = dot / std::sqrt(static_cast<double>(n));
        const double root = std::sqrt(std::max(std::fabs(g), 1e-6)) * (g > 0 ? 1 : g < 0 ? -1 : 0);
        for (int64_t i = 0; i < n; ++i) {
          const float value = y[t * n + i];
          ASSERT_NEAR(injected[s * n + i], a[s * n + i] + gain[s] * value, 1e-5);
          ASSERT_NEAR(gated[s * n + i], value / (1 + std::exp(-root)), 1e-5);
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t s = t * kStreams; s < (t + 1) * kStreams; ++s)
          sum += a[s * n + i] * b[s * n + i];
        ASSERT_NEAR(mean[t * n + i], sum / kStreams, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace tq

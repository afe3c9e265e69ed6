#include <algorithm>
#include <array>
#include <cmath>

#include "backend/ref/ref_ops.h"
#include "base/math.h"

namespace tq::ref {

void MoeCombineToken(const MoeCombineArgs& args, int64_t token) {
  for (int64_t i = 0; i < args.n; ++i) {
    float y = 0.0f;
    for (int64_t e = token * args.top_k; e < (token + 1) * args.top_k; ++e) {
      y = std::fma(args.weights[e], args.y[args.rows[e] * args.n + i], y);
    }
    args.out[token * args.n + i] = y;
  }
}

void ResidualMixToken(const ResidualMixArgs& args, int64_t token) {
  const size_t count = args.candidates.size();
  std::array<float, 64> p{};
  std::vector<float> normed(static_cast<size_t>(args.n));
  for (size_t c = 0; c < count; ++c) {
    const float* x = args.candidates[c] + token * args.n;
    const float r = InverseRms(LaneDot(x, x, args.n), args.n, args.eps);
    for (int64_t i = 0; i < args.n; ++i) normed[i] = x[i] * r;
    p[c] = LaneDot(normed.data(), args.omega, args.n);
  }
  const float max = *std::max_element(p.begin(), p.begin() + static_cast<std::ptrdiff_t>(count));
  float sum = 0.0f;
  for (size_t c = 0; c < count; ++c) {
    p[c] = Exp(p[c] - max);
    sum = sum + p[c];
  }
  for (int64_t i = 0; i < args.n; ++i) {
    float y = 0.0f;
    for (size_t c = 0; c < count; ++c) {
      y = std::fma(p[c] / sum, args.candidates[c][token * args.n + i], y);
    }
    args.out[token * args.n + i] = y;
  }
}

void StreamMeanToken(const StreamMeanArgs& args, int64_t token) {
  const int64_t first = token * args.num_streams * args.n;
  for (int64_t i = 0; i < args.n; ++i) {
    float y = 0.0f;
    for (int64_t s = 0; s < args.num_streams; ++s) {
      y = std::fma(args.a[first + s * args.n + i], args.b[first + s * args.n + i], y);
    }
    args.out[token * args.n + i] = y / static_cast<float>(args.num_streams);
  }
}

void StreamInjectToken(const StreamInjectArgs& args, int64_t token) {
  for (int64_t s = token * args.num_streams; s < (token + 1) * args.num_streams; ++s) {
    float* x = args.x + s * args.n;
    for (int64_t i = 0; i < args.n; ++i) {
      x[i] = std::fma(args.gain[s], args.y[token * args.n + i], x[i]);
    }
  }
}

void StreamGateToken(const StreamGateArgs& args, int64_t token) {
  for (int64_t s = token * args.num_streams; s < (token + 1) * args.num_streams; ++s) {
    const float dot = LaneDot(args.key + s * args.n, args.query + s * args.n, args.n);
    const float g = dot / std::sqrt(static_cast<float>(args.n));
    const float root = std::sqrt(std::max(std::fabs(g), 1e-6f));
    const float gate = Sigmoid(g > 0.0f ? root : g < 0.0f ? -root : 0.0f);
    for (int64_t i = 0; i < args.n; ++i) {
      args.out[s * args.n + i] = gate * args.value[token * args.n + i];
    }
  }
}

}  // namespace tq::ref

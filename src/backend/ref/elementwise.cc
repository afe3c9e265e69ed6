#include <array>
#include <cmath>

#include "backend/ref/ref_ops.h"
#include "base/math.h"

namespace tq::ref {
namespace {

// 256 lanes, then the tree.
float SumOfSquares(const float* x, int64_t n) {
  std::array<float, 256> lane{};
  for (int64_t i = 0; i < n; ++i) lane[i % 256] = std::fma(x[i], x[i], lane[i % 256]);
  for (int h = 128; h >= 1; h /= 2) {
    for (int j = 0; j < h; ++j) lane[j] = lane[j] + lane[j + h];
  }
  return lane[0];
}

}  // namespace

void RmsNormRow(const RmsNormArgs& args, int64_t row) {
  const float* x = args.x + row * args.n;
  float* out = args.out + row * args.n;
  const float r = 1.0f / std::sqrt(SumOfSquares(x, args.n) / static_cast<float>(args.n) + args.eps);
  for (int64_t i = 0; i < args.n; ++i) {
    const float w = args.plus_one ? 1.0f + args.w[i] : args.w[i];
    out[i] = (x[i] * r) * w;
  }
}

void RopeToken(const RopeArgs& args, int64_t token) {
  const int half = args.rotary_dim / 2;
  const float* cosine = args.cos + token * half;
  const float* sine = args.sin + token * half;
  for (int head = 0; head < args.num_heads; ++head) {
    float* x = args.x + (token * args.num_heads + head) * args.head_dim;
    for (int j = 0; j < half; ++j) {
      const float x0 = x[j];
      const float x1 = x[j + half];
      x[j] = std::fma(x0, cosine[j], -(x1 * sine[j]));
      x[j + half] = std::fma(x1, cosine[j], x0 * sine[j]);
    }
  }
}

void Glu(const GluArgs& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float gate =
        args.activation == Activation::kSilu ? Silu(args.gate[i]) : GeluTanh(args.gate[i]);
    args.out[i] = gate * args.up[i];
  }
}

void Softcap(const SoftcapArgs& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.x[i] = args.cap * Tanh(args.x[i] / args.cap);
}

}  // namespace tq::ref

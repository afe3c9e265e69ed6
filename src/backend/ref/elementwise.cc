#include <algorithm>
#include <array>
#include <cmath>

#include "backend/ref/ref_ops.h"
#include "base/math.h"

namespace tq::ref {
namespace {

// 256 lanes, then the tree.
template <typename Step>
float LaneSum(int64_t n, const Step& step) {
  std::array<float, 256> lane{};
  for (int64_t i = 0; i < n; ++i) lane[i % 256] = step(i, lane[i % 256]);
  for (int h = 128; h >= 1; h /= 2) {
    for (int j = 0; j < h; ++j) lane[j] = lane[j] + lane[j + h];
  }
  return lane[0];
}

float Limit(float x, float low, float high) {
  const float y = x < low ? low : x;
  return y > high ? high : y;
}

float Activate(const GluArgs& args, float gate, float up) {
  switch (args.activation) {
    case Activation::kSilu:
      return Silu(gate) * up;
    case Activation::kGeluTanh:
      return GeluTanh(gate) * up;
    case Activation::kSigmoid:
      return Sigmoid(gate) * up;
    case Activation::kSoftplus:
      return Softplus(gate) * up;
    case Activation::kClampedSilu: {
      const float g = gate > args.limit ? args.limit : gate;
      const float u = Limit(up, -args.limit, args.limit);
      return (u + 1.0f) * (g * Sigmoid(args.alpha * g));
    }
    case Activation::kSitu: {
      const float u = args.limit == 0.0f ? up : args.limit * Tanh(up / args.limit);
      return ((args.alpha * Tanh(gate / args.alpha)) * Sigmoid(gate)) * u;
    }
  }
  return 0.0f;
}

float Apply(MapFn fn, float x) {
  switch (fn) {
    case MapFn::kIdentity:
      return x;
    case MapFn::kSigmoid:
      return Sigmoid(x);
    case MapFn::kSoftplus:
      return Softplus(x);
    case MapFn::kSilu:
      return Silu(x);
    case MapFn::kRelu2:
      return Relu(x) * Relu(x);
  }
  return x;
}

}  // namespace

float LaneDot(const float* a, const float* b, int64_t n) {
  return LaneSum(n, [&](int64_t i, float lane) { return std::fma(a[i], b[i], lane); });
}

float InverseRms(float sum_of_squares, int64_t n, float eps) {
  return 1.0f / std::sqrt(sum_of_squares / static_cast<float>(n) + eps);
}

void RmsNormRow(const RmsNormArgs& args, int64_t row) {
  const float* x = args.x + row * args.n;
  const float* weights = args.w == nullptr ? nullptr : args.w + row % args.w_rows * args.n;
  float* out = args.out + row * args.n;
  const float r = InverseRms(LaneDot(x, x, args.n), args.n, args.eps);
  for (int64_t i = 0; i < args.n; ++i) {
    const float y = x[i] * r;
    out[i] = weights == nullptr ? y : y * (args.plus_one ? 1.0f + weights[i] : weights[i]);
  }
}

void LayerNormRow(const LayerNormArgs& args, int64_t row) {
  const float* x = args.x + row * args.n;
  float* out = args.out + row * args.n;
  const float sum = LaneSum(args.n, [&](int64_t i, float lane) { return lane + x[i]; });
  const float mean = sum / static_cast<float>(args.n);
  for (int64_t i = 0; i < args.n; ++i) out[i] = x[i] - mean;
  const float r = InverseRms(LaneDot(out, out, args.n), args.n, args.eps);
  for (int64_t i = 0; i < args.n; ++i) out[i] = std::fma(out[i] * r, args.w[i], args.b[i]);
}

void RopeToken(const RopeArgs& args, int64_t token) {
  const int half = args.rotary_dim / 2;
  const float* cosine = args.cos + token * half;
  const float* sine = args.sin + token * half;
  for (int head = 0; head < args.num_heads; ++head) {
    float* x = args.x + (token * args.num_heads + head) * args.head_dim + args.offset;
    for (int j = 0; j < half; ++j) {
      float& first = args.interleaved ? x[2 * j] : x[j];
      float& second = args.interleaved ? x[2 * j + 1] : x[j + half];
      const float x0 = first;
      const float x1 = second;
      first = std::fma(x0, cosine[j], -(x1 * sine[j]));
      second = std::fma(x1, cosine[j], x0 * sine[j]);
    }
  }
}

void Glu(const GluArgs& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.out[i] = Activate(args, args.gate[i], args.up[i]);
}

void MapRow(const MapArgs& args, int64_t row) {
  for (int64_t c = 0; c < args.n; ++c) {
    float y = args.x[row * args.x_stride + c];
    if (args.bias != nullptr) y = y + args.bias[c];
    if (args.pre != nullptr) y = y * args.pre[c];
    y = Apply(args.fn, y);
    if (args.post != nullptr) y = y * args.post[c];
    y = y * args.scale;
    args.out[row * args.n + c] = Limit(y, args.low, args.high);
  }
}

void ScaleRow(const ScaleRowsArgs& args, int64_t row) {
  for (int64_t i = row * args.n; i < (row + 1) * args.n; ++i) {
    args.out[i] = args.x[i] * args.factors[row];
  }
}

void CopyRow(const CopyRowsArgs& args, int64_t row) {
  const int64_t from = args.index == nullptr ? row : args.index[row];
  std::copy_n(args.x + from * args.x_stride, args.n, args.out + row * args.out_stride);
}

void Softcap(const SoftcapArgs& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.x[i] = args.cap * Tanh(args.x[i] / args.cap);
}

}  // namespace tq::ref

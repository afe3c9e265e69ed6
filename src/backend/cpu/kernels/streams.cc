// Weighted sums of rows: the experts of a token, and residual schemes with more than one stream.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops_moe.h"
#include "backend/ops_streams.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/streams.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/lane_sum-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kMaxCandidates = 64;

struct NormedDotStep {
  Vec r;
  HWY_INLINE Vec operator()(Vec lane, Vec x, Vec omega) const {
    return hn::MulAdd(hn::Mul(x, r), omega, lane);
  }
};

// out[i] = y of the chain y = fma(weight(j), row(j)[i], y) from +0 over j < count.
template <class Weight, class Row>
HWY_INLINE void WeightedSum(int64_t count, int64_t n, float* out, const Weight& weight,
                            const Row& row) {
  const VecTag d;
  constexpr int kVecs = 4;
  int64_t i = 0;
  for (; i + kVecs * kLanes <= n; i += kVecs * kLanes) {
    Vec y[kVecs];
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) y[v] = hn::Zero(d);
    for (int64_t j = 0; j < count; ++j) {
      const Vec w = hn::Set(d, weight(j));
      const float* x = row(j) + i;
      TQ_UNROLL
      for (int v = 0; v < kVecs; ++v) y[v] = hn::MulAdd(w, hn::LoadU(d, x + v * kLanes), y[v]);
    }
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) hn::StoreU(y[v], d, out + i + v * kLanes);
  }
  for (; i < n; i += kLanes) {
    const size_t rest = static_cast<size_t>(std::min<int64_t>(n - i, kLanes));
    Vec y = hn::Zero(d);
    for (int64_t j = 0; j < count; ++j) {
      y = hn::MulAdd(hn::Set(d, weight(j)), LoadPart(d, row(j) + i, rest), y);
    }
    StorePart(y, d, out + i, rest);
  }
}

}  // namespace

void MoeCombine(const MoeCombineArgs& args, int64_t token) {
  const float* weights = args.weights + token * args.top_k;
  const int32_t* rows = args.rows + token * args.top_k;
  WeightedSum(
      args.top_k, args.n, args.out + token * args.n, [&](int64_t i) HWY_ATTR { return weights[i]; },
      [&](int64_t i) HWY_ATTR { return args.y + rows[i] * args.n; });
}

void ResidualMix(const ResidualMixArgs& args, int64_t token) {
  const VecTag tag;
  const int64_t count = static_cast<int64_t>(args.candidates.size());
  const auto row = [&](int64_t c) HWY_ATTR { return args.candidates[c] + token * args.n; };
  float p[kMaxCandidates] = {};
  for (int64_t c = 0; c < count; ++c) {
    const float* x = row(c);
    const float r = InverseRms(LaneDot(x, x, args.n), args.n, args.eps);
    p[c] = LaneSum(x, args.omega, args.n, NormedDotStep{hn::Set(tag, r)});
  }
  const float max = *std::max_element(p, p + count);
  float sum = 0.0f;
  for (int64_t c = 0; c < count; ++c) {
    p[c] = ScalarExp(p[c] - max);
    sum = sum + p[c];
  }
  for (int64_t c = 0; c < count; ++c) p[c] = p[c] / sum;
  WeightedSum(
      count, args.n, args.out + token * args.n, [&](int64_t c) HWY_ATTR { return p[c]; }, row);
}

void StreamMean(const StreamMeanArgs& args, int64_t token) {
  float* out = args.out + token * args.n;
  std::fill_n(out, args.n, 0.0f);
  for (int64_t s = token * args.num_streams; s < (token + 1) * args.num_streams; ++s) {
    const auto add = [](VecTag, Vec y, Vec a, Vec b) HWY_ATTR { return hn::MulAdd(a, b, y); };
    ForVectors(args.n, out, add, out, args.a + s * args.n, args.b + s * args.n);
  }
  const float m = static_cast<float>(args.num_streams);
  ForVectors(
      args.n, out, [m](VecTag d, Vec y) HWY_ATTR { return hn::Div(y, hn::Set(d, m)); }, out);
}

void StreamInject(const StreamInjectArgs& args, int64_t token) {
  for (int64_t s = token * args.num_streams; s < (token + 1) * args.num_streams; ++s) {
    float* x = args.x + s * args.n;
    const float gain = args.gain[s];
    const auto add = [gain](VecTag d, Vec y, Vec before)
                         HWY_ATTR { return hn::MulAdd(hn::Set(d, gain), y, before); };
    ForVectors(args.n, x, add, args.y + token * args.n, x);
  }
}

void StreamGate(const StreamGateArgs& args, int64_t token) {
  const VecTag tag;
  for (int64_t s = token * args.num_streams; s < (token + 1) * args.num_streams; ++s) {
    const float dot = LaneDot(args.key + s * args.n, args.query + s * args.n, args.n);
    const float g = dot / std::sqrt(static_cast<float>(args.n));
    const float root = std::sqrt(std::max(std::fabs(g), 1e-6f));
    const float signed_root = g > 0.0f ? root : g < 0.0f ? -root : 0.0f;
    const Vec gate = VecSigmoid(tag, hn::Set(tag, signed_root));
    const auto apply = [&](VecTag, Vec value) HWY_ATTR { return hn::Mul(gate, value); };
    ForVectors(args.n, args.out + s * args.n, apply, args.value + token * args.n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

// Causal convolution and the Mamba2 scan: lanes are channels, tokens follow one another.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops_recurrent.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/recurrent.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

// The inputs of a convolution by time: 0 is the step's first token, negative times are the state.
struct ConvInputs {
  const float* x;
  int64_t x_stride;
  float* state;
  int64_t channels;
  int64_t history;
  const float* At(int64_t t) const {
    return t >= 0 ? x + t * x_stride : state + (history + t) * channels;
  }
};

// out[c] of token t for the channels [begin, end).
HWY_INLINE void ConvToken(const CausalConvArgs& args, const ConvInputs& inputs, int64_t t,
                          int64_t begin, int64_t end, float* out) {
  const VecTag d;
  const int64_t first = t - inputs.history;
  const auto chain = [&](const auto& load) HWY_ATTR {
    Vec y = args.bias != nullptr ? load(args.bias) : hn::Zero(d);
    for (int64_t s = 0; s < args.kernel; ++s) {
      y = hn::MulAdd(load(args.w + s * args.channels), load(inputs.At(first + s * args.dilation)),
                     y);
    }
    return args.silu ? VecSilu(d, y) : y;
  };
  int64_t c = begin;
  for (; c + kLanes <= end; c += kLanes) {
    hn::StoreU(chain([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + c); }), d, out + c);
  }
  if (c == end) return;
  const size_t rest = static_cast<size_t>(end - c);
  StorePart(chain([&](const float* p) HWY_ATTR { return LoadPart(d, p + c, rest); }), d, out + c,
            rest);
}

// kVecs vectors of a head's dims through all tokens of a sequence.
template <int kVecs, class D>
HWY_NOINLINE void ScanColumns(D d, const MambaScanArgs& args, const SequencePlan& sequence,
                              int64_t head, int64_t column, float* state) {
  using V = hn::VFromD<D>;
  constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(D()));
  const int64_t group = head / (args.num_heads / args.num_groups);
  for (int64_t t = sequence.first_token; t < sequence.first_token + sequence.num_tokens; ++t) {
    const int64_t row = t * args.num_heads + head;
    const float* b = args.b + (t * args.num_groups + group) * args.state_size;
    const float* c = args.c + (t * args.num_groups + group) * args.state_size;
    const float dt = args.dt[row];
    const V decay = hn::Set(d, ScalarExp(-(args.a[head] * dt)));
    V x[kVecs], y[kVecs];
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      x[v] = hn::LoadU(d, args.x + row * args.head_dim + column + v * kStep);
      y[v] = hn::Zero(d);
    }
    float* s = state + column;
    for (int64_t j = 0; j < args.state_size; ++j, s += args.head_dim) {
      const V u = hn::Set(d, dt * b[j]);
      const V read = hn::Set(d, c[j]);
      TQ_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        const V next = hn::MulAdd(u, x[v], hn::Mul(hn::LoadU(d, s + v * kStep), decay));
        hn::StoreU(next, d, s + v * kStep);
        y[v] = hn::MulAdd(next, read, y[v]);
      }
    }
    const V skip = hn::Set(d, args.d[head]);
    TQ_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      hn::StoreU(hn::MulAdd(skip, x[v], y[v]), d,
                 args.out + row * args.head_dim + column + v * kStep);
    }
  }
}

}  // namespace

void CausalConv(const CausalConvArgs& args, const SequencePlan& sequence, int64_t channel_begin,
                int64_t channel_end) {
  const ConvInputs inputs = {args.x + sequence.first_token * args.x_stride, args.x_stride,
                             args.state.base + sequence.state_slot * args.state.state_stride,
                             args.channels, int64_t{args.kernel - 1} * args.dilation};
  const size_t bytes = static_cast<size_t>(channel_end - channel_begin) * sizeof(float);
  if (sequence.start_position == 0) {
    for (int64_t i = 0; i < inputs.history; ++i) {
      std::memset(inputs.state + i * args.channels + channel_begin, 0, bytes);
    }
  }
  for (int64_t t = 0; t < sequence.num_tokens; ++t) {
    ConvToken(args, inputs, t, channel_begin, channel_end,
              args.out + (sequence.first_token + t) * args.channels);
  }
  // The oldest first: a row is read before it is overwritten.
  if (sequence.num_tokens == 0) return;
  for (int64_t i = 0; i < inputs.history; ++i) {
    const float* from = inputs.At(sequence.num_tokens - inputs.history + i);
    std::memcpy(inputs.state + i * args.channels + channel_begin, from + channel_begin, bytes);
  }
}

void MambaScan(const MambaScanArgs& args, const SequencePlan& sequence, int64_t head) {
  const int64_t size = int64_t{args.state_size} * args.head_dim;
  float* state = args.state.base + sequence.state_slot * args.state.state_stride + head * size;
  if (sequence.start_position == 0) std::fill_n(state, size, 0.0f);
  const hn::CappedTag<float, 1> d1;
  int64_t column = 0;
  for (; column + 4 * kLanes <= args.head_dim; column += 4 * kLanes) {
    ScanColumns<4>(VecTag(), args, sequence, head, column, state);
  }
  for (; column + kLanes <= args.head_dim; column += kLanes) {
    ScanColumns<1>(VecTag(), args, sequence, head, column, state);
  }
  for (; column < args.head_dim; ++column) {
    ScanColumns<1>(d1, args, sequence, head, column, state);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

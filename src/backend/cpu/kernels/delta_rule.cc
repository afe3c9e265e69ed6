// The gated delta rule of one value head: lanes are value dims, the chains run over the key dims.
// Reading r for a token needs the state after the token before it, so each pass over the state
// finishes one token (update, output) and reads for the next one: one load and one store per token.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops_recurrent.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/delta_rule.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

// Tokens that pass over a block of columns before the next block has its turn.
constexpr int64_t kChunkTokens = 64;
constexpr int64_t kDecays = 8192;
// Rows of a state lie apart: columns of many rows fall into the same few lines of a cache. Worth a
// copy from this many tokens on, as long as the block fits the buffer.
constexpr int64_t kCopyTokens = 6;
constexpr int64_t kMaxKeyDim = 256;
constexpr int kBlockVecs = 4;

// A run of tokens of one head.
struct DeltaRun {
  const float* q;  // of the first token
  const float* k;
  int64_t k_stride;
  const float* v;
  float* out;
  int64_t v_stride;
  const float* beta;
  int64_t beta_stride;
  const float* decay;  // Exp(log_decay)
  int64_t decay_stride;
  int64_t decay_step;  // from key dim to key dim: 0 or 1
  int64_t num_tokens;
  int64_t k_dim;
  int64_t v_dim;
  float* state;  // [k_dim, v_dim]
};

// Columns [column, column + width) of the state, wherever they are kept.
struct DeltaBlock {
  const DeltaRun& run;
  int64_t column;
  float* state;
  int64_t stride;  // from row to row
};

// What pass t over the state needs of a token.
template <class D, int kVecs>
struct DeltaColumns {
  using V = hn::VFromD<D>;
  static constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(D()));
  const DeltaBlock& block;
  const DeltaRun& run = block.run;

  // r of the first token; the state stays as it is.
  HWY_INLINE void Read(D d, V* r) const {
    TQ_UNROLL
    for (int i = 0; i < kVecs; ++i) r[i] = hn::Zero(d);
    const float* s = block.state;
    for (int64_t c = 0; c < run.k_dim; ++c, s += block.stride) {
      const V g = hn::Set(d, run.decay[c * run.decay_step]);
      const V k = hn::Set(d, run.k[c]);
      TQ_UNROLL
      for (int i = 0; i < kVecs; ++i) {
        r[i] = hn::MulAdd(hn::Mul(hn::LoadU(d, s + i * kStep), g), k, r[i]);
      }
    }
  }

  // Finishes token t. kDecayed: the stored state is already multiplied by the token's decay. kNext:
  // it is stored multiplied by the next token's decay, whose r is read.
  template <bool kDecayed, bool kNext>
  HWY_INLINE void Finish(D d, int64_t t, V* r) const {
    const float* q = run.q + t * run.k_stride;
    const float* k = run.k + t * run.k_stride;
    const float* next_k = k + run.k_stride;
    const float* decay = run.decay + t * run.decay_stride;
    const float* next_decay = decay + run.decay_stride;
    const float* value = run.v + t * run.v_stride + block.column;
    const V beta = hn::Set(d, run.beta[t * run.beta_stride]);
    V delta[kVecs], o[kVecs];
    TQ_UNROLL
    for (int i = 0; i < kVecs; ++i) {
      delta[i] = hn::Mul(beta, hn::Sub(hn::LoadU(d, value + i * kStep), r[i]));
      o[i] = hn::Zero(d);
      r[i] = hn::Zero(d);
    }
    float* s = block.state;
    for (int64_t c = 0; c < run.k_dim; ++c, s += block.stride) {
      const V k_c = hn::Set(d, k[c]), q_c = hn::Set(d, q[c]);
      TQ_UNROLL
      for (int i = 0; i < kVecs; ++i) {
        V next = hn::LoadU(d, s + i * kStep);
        if constexpr (!kDecayed) next = hn::Mul(next, hn::Set(d, decay[c * run.decay_step]));
        next = hn::MulAdd(k_c, delta[i], next);
        o[i] = hn::MulAdd(next, q_c, o[i]);
        if constexpr (kNext) {
          next = hn::Mul(next, hn::Set(d, next_decay[c * run.decay_step]));
          r[i] = hn::MulAdd(next, hn::Set(d, next_k[c]), r[i]);
        }
        hn::StoreU(next, d, s + i * kStep);
      }
    }
    TQ_UNROLL
    for (int i = 0; i < kVecs; ++i) {
      hn::StoreU(o[i], d, run.out + t * run.v_stride + block.column + i * kStep);
    }
  }

  HWY_NOINLINE void Run(D d) const {
    V r[kVecs];
    Read(d, r);
    const int64_t last = run.num_tokens - 1;
    if (last == 0) {
      Finish<false, false>(d, 0, r);
      return;
    }
    Finish<false, true>(d, 0, r);
    for (int64_t t = 1; t < last; ++t) Finish<true, true>(d, t, r);
    Finish<true, false>(d, last, r);
  }
};

template <class D, int kVecs>
HWY_INLINE void RunInPlace(D d, const DeltaRun& run, int64_t column) {
  const DeltaBlock block = {run, column, run.state + column, run.v_dim};
  DeltaColumns<D, kVecs>{block}.Run(d);
}

HWY_INLINE void RunCopied(const DeltaRun& run, int64_t column, float* copy) {
  constexpr int64_t kWidth = int64_t{kBlockVecs} * kLanes;
  for (int64_t c = 0; c < run.k_dim; ++c) {
    std::copy_n(run.state + c * run.v_dim + column, kWidth, copy + c * kWidth);
  }
  const DeltaBlock block = {run, column, copy, kWidth};
  DeltaColumns<VecTag, kBlockVecs>{block}.Run(VecTag());
  for (int64_t c = 0; c < run.k_dim; ++c) {
    std::copy_n(copy + c * kWidth, kWidth, run.state + c * run.v_dim + column);
  }
}

HWY_INLINE void RunColumns(const DeltaRun& run) {
  constexpr int64_t kWidth = int64_t{kBlockVecs} * kLanes;
  const hn::CappedTag<float, 1> d1;
  HWY_ALIGN float copy[kMaxKeyDim * kWidth];
  const bool copied = run.num_tokens >= kCopyTokens && run.k_dim <= kMaxKeyDim;
  int64_t column = 0;
  for (; column + kWidth <= run.v_dim; column += kWidth) {
    if (copied) {
      RunCopied(run, column, copy);
    } else {
      RunInPlace<VecTag, kBlockVecs>(VecTag(), run, column);
    }
  }
  for (; column + kLanes <= run.v_dim; column += kLanes) {
    RunInPlace<VecTag, 1>(VecTag(), run, column);
  }
  for (; column < run.v_dim; ++column) RunInPlace<decltype(d1), 1>(d1, run, column);
}

}  // namespace

void DeltaRule(const DeltaRuleArgs& args, const SequencePlan& sequence, int64_t head) {
  const int64_t k_dim = args.k_dim;
  const int64_t v_dim = args.v_dim;
  float* state =
      args.state.base + sequence.state_slot * args.state.state_stride + head * k_dim * v_dim;
  if (sequence.start_position == 0) std::fill_n(state, k_dim * v_dim, 0.0f);
  const int64_t k_head = head / (args.num_v_heads / args.num_k_heads);
  const int64_t num_decays = args.decay_per_key ? k_dim : 1;
  const int64_t chunk = std::clamp<int64_t>(kDecays / num_decays, 1, kChunkTokens);
  HWY_ALIGN float decay[kDecays];
  const int64_t end = sequence.first_token + sequence.num_tokens;
  for (int64_t t = sequence.first_token; t < end; t += chunk) {
    const int64_t count = std::min(chunk, end - t);
    const int64_t row = t * args.num_v_heads + head;
    for (int64_t i = 0; i < count; ++i) {
      const float* log_decay = args.log_decay + (row + i * args.num_v_heads) * num_decays;
      ForVectors(
          num_decays, decay + i * num_decays, [](VecTag d, Vec x) HWY_ATTR { return VecExp(d, x); },
          log_decay);
    }
    const int64_t k_row = (t * args.num_k_heads + k_head) * k_dim;
    RunColumns({.q = args.q + k_row,
                .k = args.k + k_row,
                .k_stride = args.num_k_heads * k_dim,
                .v = args.v + row * v_dim,
                .out = args.out + row * v_dim,
                .v_stride = args.num_v_heads * v_dim,
                .beta = args.beta + row,
                .beta_stride = args.num_v_heads,
                .decay = decay,
                .decay_stride = num_decays,
                .decay_step = args.decay_per_key ? 1 : 0,
                .num_tokens = count,
                .k_dim = k_dim,
                .v_dim = v_dim,
                .state = state});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

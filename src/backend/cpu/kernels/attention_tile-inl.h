// One tile of 64 positions for up to eight queries: scores (lanes are tokens), softmax, output
// (lanes are dims). Part of attention.cc.

#if defined(TQ_CPU_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TQ_CPU_ATTENTION_TILE_INL_H_
#undef TQ_CPU_ATTENTION_TILE_INL_H_
#else
#define TQ_CPU_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backend/cpu/kernels/vec_math-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {

constexpr int64_t kTile = 64;
constexpr int64_t kBlock = 256;  // dims whose even and odd chains start at +0
constexpr int kMaxQueries = 8;
constexpr int kAccumulators = kManyRegisters ? 16 : 8;
constexpr int kTileVecs = static_cast<int>(kTile) / kLanes;  // of one score per token
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// One segment's (o: padded v_head_dim) or the merged (o: the output itself) softmax state.
struct SoftmaxState {
  float max;
  float sum;
  float* o;
};

// A query head of a token. It sees the positions [begin, end), of them, if `selected` is not null,
// those whose bit is set.
struct Query {
  const float* q;
  const uint64_t* selected;
  float sink;  // -inf: none
  int64_t begin;
  int64_t end;
  SoftmaxState segment;
  SoftmaxState total;
  bool has_total;   // a segment was merged
  bool in_segment;  // a tile of the current segment was visible
  float alpha;      // what the output so far is multiplied by before the current tile
  float* s;         // [64] scores, then probabilities, of the current tile
};

// What exponents are taken relative to: the maximum, or 0 while every score is -inf.
HWY_INLINE float Shift(float max) { return max == kMinusInfinity ? 0.0f : max; }

// Fetches as many bytes as a step of kVecs vectors of T consumes, and moves on.
template <class T, int kVecs, int kVecLanes>
HWY_INLINE void Fetch(const std::byte*& ahead) {
  constexpr int kBytes = kVecs * kVecLanes * static_cast<int>(sizeof(T));
  TQ_UNROLL
  for (int i = 0; i < kBytes; i += 64) hwy::Prefetch(ahead + i);
  ahead += kBytes;
}

HWY_INLINE int64_t PaddedDim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

template <class D>
HWY_INLINE hn::VFromD<D> LoadAs(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::VFromD<D> LoadAs(D d, const hwy::float16_t* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), p));
}
struct Bf16 {
  uint16_t bits;
};
template <class D>
HWY_INLINE hn::VFromD<D> LoadAs(D d, const Bf16* p) {
  const hn::RebindToUnsigned<D> d32;
  const auto half = hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, half)));
}

// A tile to use, and where the bytes needed after it lie: they are fetched meanwhile.
template <class T>
struct Tile {
  const T* data;
  int64_t head_dim;
  const std::byte* ahead;
};

// s[token] of kQueries queries for the tokens of score vectors [v_begin, v_end).
template <class T, int kQueries>
HWY_NOINLINE void ScoreBlock(const Tile<T>& tile, Query* const* queries, int v_begin, int v_end,
                             float scale) {
  const VecTag d;
  constexpr int kPairs =
      std::min(kAccumulators / kQueries / 2, kTileVecs);  // score vectors at once
  const Vec factor = hn::Set(d, scale);
  const int64_t head_dim = tile.head_dim;
  const std::byte* ahead = tile.ahead;
  for (int v = v_begin / kPairs * kPairs; v < v_end; v += kPairs) {
    for (int64_t block = 0; block < head_dim; block += kBlock) {
      const int64_t block_end = std::min(head_dim, block + kBlock);
      Vec sum[kQueries][2 * kPairs];
      TQ_UNROLL
      for (int i = 0; i < kQueries; ++i) {
        TQ_UNROLL
        for (int c = 0; c < 2 * kPairs; ++c) sum[i][c] = hn::Zero(d);
      }
      const T* k = tile.data + block * kTile + 2 * v * kLanes;
      for (int64_t dim = block; dim < block_end; dim += 2, k += 2 * kTile) {
        Fetch<T, 2 * kPairs, kLanes>(ahead);
        Vec key[2 * kPairs];
        TQ_UNROLL
        for (int c = 0; c < 2 * kPairs; ++c) key[c] = LoadAs(d, k + c * kLanes);
        TQ_UNROLL
        for (int i = 0; i < kQueries; ++i) {
          const Vec pair = SetPair(queries[i]->q + dim);
          TQ_UNROLL
          for (int c = 0; c < 2 * kPairs; ++c) sum[i][c] = hn::MulAdd(key[c], pair, sum[i][c]);
        }
      }
      TQ_UNROLL
      for (int i = 0; i < kQueries; ++i) {
        TQ_UNROLL
        for (int c = 0; c < kPairs; ++c) {
          float* s = queries[i]->s + (v + c) * kLanes;
          const Vec even = hn::ConcatEven(d, sum[i][2 * c + 1], sum[i][2 * c]);
          const Vec odd = hn::ConcatOdd(d, sum[i][2 * c + 1], sum[i][2 * c]);
          const Vec before = block == 0 ? hn::Zero(d) : hn::Load(d, s);
          const Vec y = hn::Add(before, hn::Add(even, odd));
          hn::Store(block_end == head_dim ? hn::Mul(y, factor) : y, d, s);
        }
      }
    }
  }
}

template <class T>
HWY_INLINE void Scores(const Tile<T>& tile, Query* const* queries, int num_queries, int v_begin,
                       int v_end, float scale) {
  int i = 0;
  if constexpr (kManyRegisters) {
    for (; i + 8 <= num_queries; i += 8) {
      ScoreBlock<T, 8>(tile, queries + i, v_begin, v_end, scale);
    }
  }
  for (; i + 4 <= num_queries; i += 4) {
    ScoreBlock<T, 4>(tile, queries + i, v_begin, v_end, scale);
  }
  for (; i + 2 <= num_queries; i += 2) {
    ScoreBlock<T, 2>(tile, queries + i, v_begin, v_end, scale);
  }
  if (i < num_queries) ScoreBlock<T, 1>(tile, queries + i, v_begin, v_end, scale);
}

// Scores to probabilities of the tile's tokens [begin, end); updates the running maximum and sum.
HWY_INLINE void Softmax(Query& query, int64_t begin, int64_t end) {
  const VecTag d;
  float* s = query.s;
  std::fill(s, s + begin, kMinusInfinity);
  std::fill(s + end, s + kTile, kMinusInfinity);
  Vec v[kTileVecs];
  Vec max_v = hn::Set(d, query.segment.max);
  TQ_UNROLL
  for (int i = 0; i < kTileVecs; ++i) {
    v[i] = hn::Load(d, s + i * kLanes);
    max_v = hn::Max(max_v, v[i]);
  }
  const float max = hn::GetLane(hn::MaxOfLanes(d, max_v));  // the same in any order
  query.alpha = query.in_segment ? ScalarExp(query.segment.max - Shift(max)) : 0.0f;
  const Vec shift = hn::Set(d, Shift(max));
  TQ_UNROLL
  for (int i = 0; i < kTileVecs; ++i) {
    v[i] = VecExp(d, hn::Sub(v[i], shift));
    hn::Store(v[i], d, s + i * kLanes);
  }
  TQ_UNROLL
  for (int h = kTileVecs / 2; h > 0; h /= 2) {
    TQ_UNROLL
    for (int i = 0; i < h; ++i) v[i] = hn::Add(v[i], v[i + h]);
  }
  query.segment.sum = ScalarFma(query.segment.sum, query.alpha, TreeSum(v[0]));
  query.segment.max = max;
  query.in_segment = true;
}

// o[dims of kVecs vectors] = o * alpha, then the chain over the tokens [begin, end).
template <int kQueries, int kVecs, class T, class D, class V = hn::VFromD<D>>
HWY_INLINE void OutputVecs(D d, const Tile<T>& tile, Query* const* queries, int64_t dim,
                           int64_t begin, int64_t end) {
  constexpr int kStep = static_cast<int>(hn::MaxLanes(D()));
  const std::byte* ahead = tile.ahead + dim * kTile * static_cast<int64_t>(sizeof(T));
  V o[kQueries][kVecs];
  TQ_UNROLL
  for (int i = 0; i < kQueries; ++i) {
    const V alpha = hn::Set(d, queries[i]->alpha);
    TQ_UNROLL
    for (int c = 0; c < kVecs; ++c) {
      o[i][c] = hn::Mul(hn::LoadU(d, queries[i]->segment.o + dim + c * kStep), alpha);
    }
  }
  for (int64_t j = begin; j < end; ++j) {
    if constexpr (kStep == kLanes) Fetch<T, kVecs, kLanes>(ahead);
    const T* row = tile.data + j * tile.head_dim + dim;
    V value[kVecs];
    TQ_UNROLL
    for (int c = 0; c < kVecs; ++c) value[c] = LoadAs(d, row + c * kStep);
    TQ_UNROLL
    for (int i = 0; i < kQueries; ++i) {
      const V p = hn::Set(d, queries[i]->s[j]);
      TQ_UNROLL
      for (int c = 0; c < kVecs; ++c) o[i][c] = hn::MulAdd(p, value[c], o[i][c]);
    }
  }
  TQ_UNROLL
  for (int i = 0; i < kQueries; ++i) {
    TQ_UNROLL
    for (int c = 0; c < kVecs; ++c) {
      hn::StoreU(o[i][c], d, queries[i]->segment.o + dim + c * kStep);
    }
  }
}

// All dims from `dim`: kVecs full vectors at a time, then fewer.
template <int kQueries, int kVecs, class T>
HWY_INLINE int64_t OutputDims(const Tile<T>& tile, Query* const* queries, int64_t dim,
                              int64_t begin, int64_t end) {
  for (; dim + kVecs * kLanes <= tile.head_dim; dim += kVecs * kLanes) {
    OutputVecs<kQueries, kVecs>(VecTag(), tile, queries, dim, begin, end);
  }
  if constexpr (kVecs > 1) {
    return OutputDims<kQueries, kVecs / 2>(tile, queries, dim, begin, end);
  }
  return dim;
}

template <class T, int kQueries>
HWY_NOINLINE void OutputBlock(const Tile<T>& tile, Query* const* queries, int64_t begin,
                              int64_t end) {
  constexpr int kVecs = std::min(kAccumulators / kQueries, 8);
  int64_t dim = OutputDims<kQueries, kVecs>(tile, queries, 0, begin, end);
  if constexpr (kLanes > 8) {
    const hn::CappedTag<float, 8> d8;
    for (; dim + 8 <= tile.head_dim; dim += 8) {
      OutputVecs<kQueries, 1>(d8, tile, queries, dim, begin, end);
    }
  }
  const hn::CappedTag<float, 2> d2;
  for (; dim < tile.head_dim; dim += 2) {
    OutputVecs<kQueries, 1>(d2, tile, queries, dim, begin, end);
  }
}

template <class T>
HWY_INLINE void Outputs(const Tile<T>& tile, Query* const* queries, int num_queries, int64_t begin,
                        int64_t end) {
  int i = 0;
  if constexpr (kManyRegisters) {
    for (; i + 8 <= num_queries; i += 8) {
      OutputBlock<T, 8>(tile, queries + i, begin, end);
    }
  }
  for (; i + 4 <= num_queries; i += 4) {
    OutputBlock<T, 4>(tile, queries + i, begin, end);
  }
  for (; i + 2 <= num_queries; i += 2) {
    OutputBlock<T, 2>(tile, queries + i, begin, end);
  }
  if (i < num_queries) OutputBlock<T, 1>(tile, queries + i, begin, end);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

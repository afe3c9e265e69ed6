// The scores of sparse attention's indexer: lanes are positions, eight heads share a loaded key.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/highway_targets.h"
#include "backend/ops_index.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/index_scores.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/attention_tile-inl.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

// scores[position of the tile] for the score vectors [v_begin, v_end).
template <class T>
HWY_INLINE void ScoreTile(const IndexSelectArgs& args, const Tile<T>& keys, int64_t token,
                          int v_begin, int v_end, float* scores) {
  const VecTag d;
  HWY_ALIGN float dots[kMaxQueries][kTile];
  Query queries[kMaxQueries];
  Query* pointers[kMaxQueries];
  HWY_ALIGN float sums[kTile] = {};
  for (int head = 0; head < args.num_heads; head += kMaxQueries) {
    const int count = std::min(kMaxQueries, args.num_heads - head);
    const int64_t row = token * args.num_heads + head;
    for (int i = 0; i < count; ++i) {
      queries[i].q = args.q + (row + i) * args.layout.head_dim;
      queries[i].s = dots[i];
      pointers[i] = &queries[i];
    }
    Scores(keys, pointers, count, v_begin, v_end, 1.0f);
    for (int i = 0; i < count; ++i) {
      const Vec w = hn::Set(d, args.w != nullptr ? args.w[row + i] : 1.0f);  // fma(1, x, s) = s + x
      for (int64_t j = v_begin * kLanes; j < v_end * kLanes; j += kLanes) {
        const Vec dot = VecRelu(d, hn::Load(d, dots[i] + j));
        hn::Store(hn::MulAdd(w, dot, hn::Load(d, sums + j)), d, sums + j);
      }
    }
  }
  const Vec scale = hn::Set(d, args.scale);
  for (int64_t j = v_begin * kLanes; j < v_end * kLanes; j += kLanes) {
    hn::StoreU(hn::Mul(hn::Load(d, sums + j), scale), d, scores + j);
  }
}

template <class T>
HWY_INLINE void ScoreTiles(const IndexSelectArgs& args, const SequencePlan& sequence, int64_t token,
                           int64_t tile_begin, int64_t tile_end, float* scores) {
  const int64_t end = sequence.start_position + (token - sequence.first_token) + 1;
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    const int64_t position = tile * kTile;
    const std::byte* k = args.pages + sequence.pages[tile] * args.layout.page_bytes();
    const Tile<T> keys = {reinterpret_cast<const T*>(k), args.layout.head_dim, k};
    const int vecs =
        static_cast<int>(std::min<int64_t>(kTileVecs, (end - position + kLanes - 1) / kLanes));
    const int step = args.block / kLanes;  // only the last vector of a wide block has a candidate
    if (step <= 1) {
      ScoreTile(args, keys, token, 0, vecs, scores + position);
      continue;
    }
    for (int v = step - 1; v < vecs; v += step) {
      ScoreTile(args, keys, token, v, v + 1, scores + position);
    }
  }
}

}  // namespace

void IndexScores(const IndexSelectArgs& args, const SequencePlan& sequence, int64_t token,
                 int64_t tile_begin, int64_t tile_end, float* scores) {
  if (args.layout.k_format() == KvFormat::kF16) {
    ScoreTiles<hwy::float16_t>(args, sequence, token, tile_begin, tile_end, scores);
  } else {
    ScoreTiles<float>(args, sequence, token, tile_begin, tile_end, scores);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();

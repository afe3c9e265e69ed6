#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/kv_rows.h"
#include "backend/ref/ref_ops.h"
#include "base/math.h"

namespace tq::ref {
namespace {

struct Candidate {
  int64_t position;
  float score;
};

float Score(const IndexSelectArgs& args, int64_t token, const float* key) {
  const int64_t dims = args.layout.head_dim;
  float s = 0.0f;
  for (int64_t a = 0; a < args.num_heads; ++a) {
    const int64_t row = token * args.num_heads + a;
    const float dot = Relu(FloatDot(key, args.q + row * dims, dims));
    s = args.w != nullptr ? std::fma(args.w[row], dot, s) : s + dot;
  }
  const float score = s * args.scale;
  return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
}

}  // namespace

void IndexSelectToken(const IndexSelectArgs& args, const SequencePlan& sequence, int64_t token) {
  const int64_t position = sequence.start_position + (token - sequence.first_token);
  uint64_t* selected = args.selected + token * args.selected_stride;
  std::fill_n(selected, position / 64 + 1, uint64_t{0});
  const auto select = [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) selected[j / 64] |= uint64_t{1} << (j % 64);
  };

  std::vector<float> key(static_cast<size_t>(args.layout.head_dim));
  const KvTile tile = args.layout.k_tile();
  std::vector<Candidate> candidates;
  int64_t end = 0;
  for (; end + args.block <= position + 1; end += args.block) {
    const int64_t j = end + args.block - 1;
    const std::byte* page = args.pages + sequence.pages[j / kPageTokens] * args.layout.page_bytes();
    LoadKvRow(tile, page, j % kPageTokens, nullptr, nullptr, key.data());  // never packed
    candidates.push_back({j, Score(args, token, key.data())});
  }
  select(end, position + 1);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  const int64_t count = std::min<int64_t>(args.top_k, static_cast<int64_t>(candidates.size()));
  for (int64_t i = 0; i < count; ++i) {
    select(candidates[i].position - args.block + 1, candidates[i].position + 1);
  }
}

}  // namespace tq::ref

// The op of sparse attention: which cached positions a query looks at. Same conventions as
// backend/ops.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"
#include "backend/step_plan.h"

namespace tq {

// score[t, j] = scale * sum over a < Hi of w[t, a] * max(0, q[t, a] . key[j]), over the candidates
// j of query t: positions j <= t with (j + 1) % block == 0. The top_k best candidates are selected
// (equal scores: the lower position first; all when there are no more than top_k); candidate j
// stands for the positions j - block + 1 .. j. Positions after the last whole block are always
// selected. selected: one bit per position, 64 positions a word, words up to the query's own
// position written.
struct IndexSelectArgs {
  const StepPlan* plan;
  KvLayout layout;  // one KV head, values kNone
  const std::byte* pages;
  const float* q;            // [T, Hi, D]
  const float* w = nullptr;  // [T, Hi]; null: ones
  int num_heads;
  float scale;
  int64_t top_k;
  int block = 1;       // 1, 2, 4, ... 64
  uint64_t* selected;  // [T, selected_stride]
  int64_t selected_stride;
};

}  // namespace tq

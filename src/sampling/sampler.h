// Sampler: logits -> one id. A pure function of logits, parameters, history and (seed, position),
// so a token does not depend on the batch that it was computed in. Thread: engine.
//
// Order: logit bias; repetition penalty over the distinct ids of the last repetition_context ones
// (a positive logit is divided, any other multiplied); forbidden ids to -inf. Temperature 0 takes
// the lowest id among the largest logits. Otherwise: top_k (of equal logits the lower id first);
// weights Exp((logit - largest) / temperature) in f32; top_p (the smallest set, by falling logit,
// then rising id, whose share of the weights reaches top_p); min_p (weights of at least min_p times
// the largest); a draw by UniformAt(seed, position) (random.h). Sums are f64, in the order of the
// candidates: rising id, or falling logit once top_k or top_p has sorted them.
// NaN counts as -inf; +inf as the largest finite number. Without any logit above -inf the lowest id
// that is not forbidden is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tq {

struct SamplingParams {
  float temperature = 0.0f;         // 0: greedy
  float top_p = 1.0f;               // (0, 1]
  int top_k = 0;                    // 0: off
  float min_p = 0.0f;               // [0, 1)
  float repetition_penalty = 1.0f;  // 1: off
  int repetition_context = 256;     // last tokens (prompt included) that the penalty sees
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;  // (id, added to its logit)
  // Errors: kInvalidArgument naming the field, the range and the value.
  Status Validate(int64_t vocab_size) const;
};

class Sampler {
 public:
  explicit Sampler(SamplingParams params) : params_(std::move(params)) {}

  // history: prompt and generated ids so far. forbidden: ids that may not come now (end ids before
  // min_tokens). logits is changed in place. position: index of the token being drawn.
  // Requires: params valid for this vocabulary; every id of history and forbidden < logits.size().
  // Cost: after the first call of a kind no memory is allocated.
  int32_t Sample(std::span<float> logits, std::span<const int32_t> history,
                 std::span<const int32_t> forbidden, int64_t position);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  void Penalize(std::span<float> logits, std::span<const int32_t> history);
  void CollectCandidates(std::span<const float> logits);
  // candidates_[begin, begin + count) become the next best ones in order. Requires: those before
  // `begin` are sorted already.
  void SortBest(size_t begin, size_t count);
  void KeepTopK();
  void KeepTopP();
  int32_t Draw(int64_t position);
  float Weight(Candidate candidate) const;

  SamplingParams params_;
  float largest_ = 0.0f;               // logit of the best candidate
  bool sorted_ = false;                // candidates_ by falling logit
  std::vector<Candidate> candidates_;  // all three reused
  std::vector<float> weights_;
  std::vector<uint8_t> seen_;  // per id: met in the history; all 0 between calls
};

}  // namespace tq

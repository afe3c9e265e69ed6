// Sampler: logits -> one id. A pure function of logits, parameters, history, mask and (seed,
// position), so a token does not depend on the batch that it was computed in. Thread: engine.
//
// Order:
// 1. the constraint's mask: what it forbids is -inf;
// 2. logit bias;
// 3. repetition penalty, then frequency and presence penalty, then DRY (penalties.h);
// 4. forbidden ids and ends of bad words: -inf.
// Temperature below 1e-5, or SamplerCall::greedy: the lowest id among the largest logits.
// Otherwise, in the order of params.order:
// 5. top_k, typical_p, top_p, min_p, XTC (candidates.h), each on what the one before it left and on
//    its shares of that; then the temperature, which changes the shares of what comes after it;
// 6. a draw: candidates by rising id, the first one at which the sum of the weights exceeds
//    UniformAt(seed, position) (random.h) of their total.
// Weights are integers (weights.h), so every sum is exact. "Better" is the larger logit, then the
// lower id. NaN counts as -inf; +inf as the largest finite number. Without any logit above -inf the
// lowest id that is neither masked nor forbidden is taken; if there is none, the lowest that is not
// masked: a constraint outranks min_tokens and bad words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"
#include "sampling/penalties.h"

namespace tq {

// Memory of a draw, shared by all requests of a thread: nothing is kept between two draws.
class SamplerScratch {
 public:
  // For what Sample needs of it, so that none of its calls allocates.
  void Reserve(size_t vocab_size, size_t longest_history);
  static int64_t BytesFor(int64_t vocab_size, int64_t longest_history);

 private:
  friend class Sampler;
  Candidates candidates_;
  PenaltyScratch penalties_;
  std::vector<float> raw_;  // logits as they were, for logprobs
};

struct SamplerCall {
  std::span<const int32_t> history = {};    // prompt and generated ids so far
  size_t prompt_tokens = 0;                 // how many of them are the prompt
  std::span<const int32_t> forbidden = {};  // ids that may not come now, say ends before min_tokens
  std::span<const uint32_t> allowed = {};   // of a Constraint; empty: no mask
  int64_t position = 0;                     // index of the token being drawn
  int num_logprobs = -1;                    // alternatives; -1: no logprobs at all
  bool greedy = false;                      // whatever the temperature
};

struct SampledToken {
  int32_t id = 0;
  TokenLogprobs logprobs;  // when they were asked for
};

class Sampler {
 public:
  explicit Sampler(SamplingParams params)
      : params_(std::move(params)), dry_breakers_(params_.dry_breakers) {}

  // logits is changed in place.
  // Requires: params valid for this vocabulary; every id of history and forbidden < logits.size();
  // num_logprobs <= TokenLogprobs::kMaxTop.
  SampledToken Sample(std::span<float> logits, const SamplerCall& call,
                      SamplerScratch& scratch) const;

 private:
  void ChangeLogits(std::span<float> logits, const SamplerCall& call,
                    SamplerScratch& scratch) const;
  int32_t Choose(std::span<const float> logits, const SamplerCall& call,
                 Candidates& candidates) const;
  void ApplyStep(SamplerStep step, int64_t position, Candidates& candidates) const;
  // Calls forbid(id) for every id that ends a bad word now.
  template <typename Forbid>
  void ForBadWords(std::span<const int32_t> history, Forbid forbid) const;
  int32_t LowestAllowed(size_t vocab_size, const SamplerCall& call) const;

  SamplingParams params_;
  DryBreakers dry_breakers_;
};

}  // namespace tq

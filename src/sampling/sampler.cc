#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"
#include "base/math.h"
#include "sampling/random.h"

namespace tq {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// Only when there is nothing to choose from.
int32_t LowestAllowed(std::span<const float> logits, std::span<const int32_t> forbidden) {
  for (size_t id = 0; id < logits.size(); ++id) {
    const auto candidate = static_cast<int32_t>(id);
    if (std::find(forbidden.begin(), forbidden.end(), candidate) == forbidden.end()) {
      return candidate;
    }
  }
  return 0;
}

// -1 when no logit is above -inf.
int32_t ArgMax(std::span<const float> logits) {
  float best = kNegInf;
  int32_t best_id = -1;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > best) {  // false for NaN
      best = logits[id];
      best_id = static_cast<int32_t>(id);
    }
  }
  return best_id;
}

Status BadField(std::string_view field, std::string_view expected, double found) {
  return InvalidArgument(fmt::format("{}: expected {}, found {}", field, expected, found));
}

}  // namespace

Status SamplingParams::Validate(int64_t vocab_size) const {
  if (!(temperature >= 0.0f) || !std::isfinite(temperature)) {
    return BadField("temperature", "a number >= 0 (0 is greedy)", temperature);
  }
  if (!(top_p > 0.0f && top_p <= 1.0f)) return BadField("top_p", "(0, 1] (1 is off)", top_p);
  if (top_k < 0) return BadField("top_k", "a number >= 0 (0 is off)", top_k);
  if (!(min_p >= 0.0f && min_p < 1.0f)) return BadField("min_p", "[0, 1) (0 is off)", min_p);
  if (!(repetition_penalty > 0.0f) || !std::isfinite(repetition_penalty)) {
    return BadField("repetition_penalty", "a number > 0 (1 is off)", repetition_penalty);
  }
  if (repetition_context < 0) {
    return BadField("repetition_context", "a number >= 0", repetition_context);
  }
  for (const auto& [id, bias] : logit_bias) {
    if (id < 0 || id >= vocab_size) {
      return BadField("logit_bias", fmt::format("ids in [0, {})", vocab_size), id);
    }
    if (!std::isfinite(bias)) {
      return BadField(fmt::format("logit_bias of id {}", id), "a finite number", bias);
    }
  }
  return Status::Ok();
}

int32_t Sampler::Sample(std::span<float> logits, std::span<const int32_t> history,
                        std::span<const int32_t> forbidden, int64_t position) {
  for (const auto& [id, bias] : params_.logit_bias) logits[static_cast<size_t>(id)] += bias;
  if (params_.repetition_penalty != 1.0f) Penalize(logits, history);
  for (const int32_t id : forbidden) logits[static_cast<size_t>(id)] = kNegInf;

  if (params_.temperature == 0.0f) {
    const int32_t best = ArgMax(logits);
    return best >= 0 ? best : LowestAllowed(logits, forbidden);
  }
  CollectCandidates(logits);
  if (candidates_.empty()) return LowestAllowed(logits, forbidden);
  KeepTopK();
  KeepTopP();
  return Draw(position);
}

void Sampler::Penalize(std::span<float> logits, std::span<const int32_t> history) {
  const size_t window = std::min(history.size(), static_cast<size_t>(params_.repetition_context));
  const std::span<const int32_t> last = history.last(window);
  if (seen_.size() < logits.size()) seen_.resize(logits.size(), 0);
  for (const int32_t signed_id : last) {
    const auto id = static_cast<size_t>(signed_id);
    TQ_DCHECK(id < logits.size());
    if (seen_[id]) continue;
    seen_[id] = 1;
    float& logit = logits[id];
    logit = logit > 0.0f ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
  }
  for (const int32_t id : last) seen_[static_cast<size_t>(id)] = 0;
}

void Sampler::CollectCandidates(std::span<const float> logits) {
  candidates_.clear();
  candidates_.reserve(logits.size());
  largest_ = kNegInf;
  sorted_ = false;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] > kNegInf)) continue;  // -inf and NaN
    const float logit = std::min(logits[id], std::numeric_limits<float>::max());
    largest_ = std::max(largest_, logit);
    candidates_.push_back({logit, static_cast<int32_t>(id)});
  }
}

void Sampler::SortBest(size_t begin, size_t count) {
  // A total order, so the result does not depend on the library's algorithms.
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const auto first = candidates_.begin() + static_cast<ptrdiff_t>(begin);
  const auto middle = first + static_cast<ptrdiff_t>(count);
  // A heap of `count` wins while few are wanted: most candidates cost one comparison.
  if (count <= candidates_.size() / 64) {
    std::partial_sort(first, middle, candidates_.end(), better);
    return;
  }
  if (middle != candidates_.end()) std::nth_element(first, middle, candidates_.end(), better);
  std::sort(first, middle, better);
}

void Sampler::KeepTopK() {
  const auto k = static_cast<size_t>(params_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  SortBest(0, k);
  candidates_.resize(k);
  sorted_ = true;
}

void Sampler::KeepTopP() {
  if (params_.top_p >= 1.0f) return;
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += Weight(candidate);
  const double wanted = double{params_.top_p} * total;

  // Few candidates are kept as a rule: sort in growing pieces.
  size_t num_sorted = sorted_ ? candidates_.size() : 0;
  size_t kept = 0;
  for (double sum = 0.0; kept < candidates_.size() && (kept == 0 || sum < wanted); ++kept) {
    if (kept == num_sorted) {
      const size_t count = std::min(candidates_.size() - kept, std::max<size_t>(64, 7 * kept));
      SortBest(kept, count);
      num_sorted += count;
    }
    sum += Weight(candidates_[kept]);
  }
  candidates_.resize(kept);
  sorted_ = true;
}

int32_t Sampler::Draw(int64_t position) {
  weights_.clear();
  weights_.reserve(candidates_.capacity());
  double total = 0.0;
  size_t kept = 0;
  for (const Candidate& candidate : candidates_) {
    const float weight = Weight(candidate);
    // The largest weight is Exp(0) = 1, so min_p is a threshold as it is.
    if (weight == 0.0f || weight < params_.min_p) continue;
    candidates_[kept++] = candidate;
    weights_.push_back(weight);
    total += weight;
  }
  const double target = UniformAt(params_.seed, position) * total;
  double sum = 0.0;
  for (size_t i = 0; i + 1 < kept; ++i) {
    sum += weights_[i];
    if (sum > target) return candidates_[i].id;
  }
  return candidates_[kept - 1].id;
}

float Sampler::Weight(Candidate candidate) const {
  return Exp((candidate.logit - largest_) / params_.temperature);
}

}  // namespace tq

#include "sampling/sampler.h"

#include <algorithm>
#include <limits>

#include "sampling/random.h"

namespace tq {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();
constexpr float kGreedyTemperature = 1e-5f;

bool IsAllowed(std::span<const uint32_t> mask, size_t id) {
  return mask.empty() || ((mask[id / 32] >> (id % 32)) & 1) != 0;
}

void ApplyMask(std::span<const uint32_t> mask, std::span<float> logits) {
  for (size_t first = 0; first < logits.size(); first += 32) {
    const uint32_t bits = mask[first / 32];
    if (bits == ~uint32_t{0}) continue;
    const size_t count = std::min<size_t>(32, logits.size() - first);
    for (size_t i = 0; i < count; ++i) {
      if (((bits >> i) & 1) == 0) logits[first + i] = kNegInf;
    }
  }
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

}  // namespace

void SamplerScratch::Reserve(size_t vocab_size, size_t longest_history) {
  candidates_.Reserve(vocab_size);
  penalties_.Reserve(vocab_size, longest_history);
  raw_.reserve(vocab_size);
}

int64_t SamplerScratch::BytesFor(int64_t vocab_size, int64_t longest_history) {
  constexpr size_t kPerId = Candidates::kBytesPerId + PenaltyScratch::kBytesPerId + sizeof(float);
  return vocab_size * static_cast<int64_t>(kPerId) +
         longest_history * static_cast<int64_t>(sizeof(int32_t));
}

SampledToken Sampler::Sample(std::span<float> logits, const SamplerCall& call,
                             SamplerScratch& scratch) const {
  if (call.num_logprobs >= 0) scratch.raw_.assign(logits.begin(), logits.end());
  ChangeLogits(logits, call, scratch);
  SampledToken token;
  token.id = Choose(logits, call, scratch.candidates_);
  if (call.num_logprobs >= 0) {
    token.logprobs =
        ComputeLogprobs(scratch.raw_, token.id, call.num_logprobs, scratch.candidates_);
  }
  return token;
}

void Sampler::ChangeLogits(std::span<float> logits, const SamplerCall& call,
                           SamplerScratch& scratch) const {
  PenaltyScratch& penalties = scratch.penalties_;
  if (!call.allowed.empty()) ApplyMask(call.allowed, logits);
  for (const auto& [id, bias] : params_.logit_bias) logits[static_cast<size_t>(id)] += bias;
  const bool presence = params_.presence_penalty != 0.0f || params_.frequency_penalty != 0.0f;
  const bool dry = params_.dry_multiplier > 0.0f;
  const bool repetition = params_.repetition_penalty != 1.0f;
  if (presence || dry || repetition) penalties.Reserve(logits.size(), 0);
  if (repetition) ApplyRepetition(params_, call.history, logits, penalties);
  if (presence) {
    const size_t skipped = params_.penalize_prompt ? 0 : call.prompt_tokens;
    ApplyPresence(params_, call.history.subspan(skipped), logits, penalties);
  }
  if (dry) ApplyDry(params_, dry_breakers_, call.history, logits, penalties);
  for (const int32_t id : call.forbidden) logits[static_cast<size_t>(id)] = kNegInf;
  ForBadWords(call.history, [&](size_t id) { logits[id] = kNegInf; });
}

int32_t Sampler::Choose(std::span<const float> logits, const SamplerCall& call,
                        Candidates& candidates) const {
  if (call.greedy || params_.temperature < kGreedyTemperature) {
    const int32_t best = ArgMax(logits);
    return best >= 0 ? best : LowestAllowed(logits.size(), call);
  }
  candidates.Collect(logits);
  if (candidates.empty()) return LowestAllowed(logits.size(), call);
  const std::span<const SamplerStep> order =
      params_.order.empty() ? std::span<const SamplerStep>(kDefaultOrder) : params_.order;
  for (const SamplerStep step : order) ApplyStep(step, call.position, candidates);
  return candidates.Draw(Uniform53(params_.seed, call.position));
}

void Sampler::ApplyStep(SamplerStep step, int64_t position, Candidates& candidates) const {
  switch (step) {
    case SamplerStep::kTopK:
      if (params_.top_k > 0) candidates.KeepTopK(static_cast<size_t>(params_.top_k));
      return;
    case SamplerStep::kTypicalP:
      if (params_.typical_p < 1.0f) candidates.KeepTypical(params_.typical_p);
      return;
    case SamplerStep::kTopP:
      if (params_.top_p < 1.0f) candidates.KeepTopP(params_.top_p);
      return;
    case SamplerStep::kMinP:
      if (params_.min_p > 0.0f) candidates.KeepMinP(params_.min_p);
      return;
    case SamplerStep::kXtc:
      if (params_.xtc_threshold > 0.5f ||
          UniformAt(params_.seed, position, kXtcStream) >= double{params_.xtc_probability}) {
        return;
      }
      candidates.DropTop(params_.xtc_threshold);
      return;
    case SamplerStep::kTemperature:
      candidates.SetTemperature(params_.temperature);
      return;
  }
}

template <typename Forbid>
void Sampler::ForBadWords(std::span<const int32_t> history, Forbid forbid) const {
  for (const std::vector<int32_t>& word : params_.bad_words) {
    const size_t before = word.size() - 1;
    if (before > history.size()) continue;
    if (!std::equal(word.begin(), word.end() - 1, history.last(before).begin())) continue;
    forbid(static_cast<size_t>(word.back()));
  }
}

int32_t Sampler::LowestAllowed(size_t vocab_size, const SamplerCall& call) const {
  int32_t lowest_of_mask = -1;
  for (size_t id = 0; id < vocab_size; ++id) {
    if (!IsAllowed(call.allowed, id)) continue;
    const auto candidate = static_cast<int32_t>(id);
    if (lowest_of_mask < 0) lowest_of_mask = candidate;
    bool forbidden =
        std::find(call.forbidden.begin(), call.forbidden.end(), candidate) != call.forbidden.end();
    ForBadWords(call.history, [&](size_t bad) { forbidden = forbidden || bad == id; });
    if (!forbidden) return candidate;
  }
  return std::max(lowest_of_mask, 0);
}

}  // namespace tq

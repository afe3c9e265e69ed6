#include "sampling/penalties.h"

#include <algorithm>

#include "base/check.h"
#include "base/math.h"

namespace tq {
namespace {

std::span<const int32_t> Last(std::span<const int32_t> history, int count) {
  if (count < 0) return history;
  return history.last(std::min(history.size(), static_cast<size_t>(count)));
}

bool StartsWith(std::span<const int32_t> ids, std::span<const int32_t> begin) {
  return ids.size() >= begin.size() && std::equal(begin.begin(), begin.end(), ids.begin());
}

// How many of the last ids a repeat may have: those after the first id of the last breaker.
size_t LongestRepeat(const DryBreakers& breakers, std::span<const int32_t> ids,
                     std::vector<int32_t>& marks) {
  for (const int32_t id : breakers.singles) marks[static_cast<size_t>(id)] = 1;
  size_t length = 0;
  for (; length < ids.size(); ++length) {
    const std::span<const int32_t> tail = ids.last(length + 1);
    const bool breaks = marks[static_cast<size_t>(tail.front())] != 0 ||
                        std::any_of(breakers.sequences.begin(), breakers.sequences.end(),
                                    [&](const auto& ids_of) { return StartsWith(tail, ids_of); });
    if (breaks) break;
  }
  for (const int32_t id : breakers.singles) marks[static_cast<size_t>(id)] = 0;
  return length;
}

// matches[i]: how many ids before ids[size - i] are also the last ones of ids, i = 1 ...; the
// Z function of the reversed ids.
void CountMatches(std::span<const int32_t> ids, std::vector<int32_t>& matches) {
  const auto size = static_cast<int64_t>(ids.size());
  const auto from_end = [&](int64_t i) { return ids[static_cast<size_t>(size - 1 - i)]; };
  matches.assign(ids.size(), 0);
  int64_t begin = 0;  // the match that reaches furthest: [begin, end)
  int64_t end = 0;
  for (int64_t i = 1; i < size; ++i) {
    int64_t length = 0;
    if (i < end) {
      length = std::min<int64_t>(end - i, matches[static_cast<size_t>(i - begin)]);
    }
    while (i + length < size && from_end(length) == from_end(i + length)) ++length;
    matches[static_cast<size_t>(i)] = static_cast<int32_t>(length);
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
  }
}

float DryPenalty(const SamplingParams& params, int32_t length) {
  constexpr double kMost = 1e30;  // beyond any logit
  const double exponent = length - params.dry_allowed_length;
  const double base = params.dry_base;
  if (base > 1.0 && exponent * LogF64(base) > 100.0) return static_cast<float>(kMost);
  const double factor = base > 1.0 ? PowF64(base, exponent) : 1.0;
  return static_cast<float>(std::min(double{params.dry_multiplier} * factor, kMost));
}

}  // namespace

void PenaltyScratch::Reserve(size_t vocab_size, size_t longest_history) {
  if (by_id.size() < vocab_size) by_id.resize(vocab_size, 0);
  matches.reserve(longest_history);
}

DryBreakers::DryBreakers(const std::vector<std::vector<int32_t>>& all) {
  for (const std::vector<int32_t>& ids : all) {
    if (ids.size() == 1) {
      singles.push_back(ids.front());
    } else {
      sequences.push_back(ids);
    }
  }
}

void ApplyRepetition(const SamplingParams& params, std::span<const int32_t> history,
                     std::span<float> logits, PenaltyScratch& scratch) {
  const std::span<const int32_t> last = Last(history, params.repetition_context);
  for (const int32_t signed_id : last) {
    const auto id = static_cast<size_t>(signed_id);
    TQ_DCHECK(id < logits.size());
    if (scratch.by_id[id] != 0) continue;
    scratch.by_id[id] = 1;
    float& logit = logits[id];
    logit = logit > 0.0f ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
  for (const int32_t id : last) scratch.by_id[static_cast<size_t>(id)] = 0;
}

void ApplyPresence(const SamplingParams& params, std::span<const int32_t> history,
                   std::span<float> logits, PenaltyScratch& scratch) {
  const std::span<const int32_t> last = Last(history, params.penalty_context);
  for (const int32_t id : last) ++scratch.by_id[static_cast<size_t>(id)];
  for (const int32_t signed_id : last) {
    const auto id = static_cast<size_t>(signed_id);
    const int32_t count = scratch.by_id[id];
    if (count == 0) continue;
    scratch.by_id[id] = 0;
    logits[id] -= static_cast<float>(count) * params.frequency_penalty + params.presence_penalty;
  }
}

void ApplyDry(const SamplingParams& params, const DryBreakers& breakers,
              std::span<const int32_t> history, std::span<float> logits, PenaltyScratch& scratch) {
  const std::span<const int32_t> ids = Last(history, params.dry_context);
  const size_t longest = LongestRepeat(breakers, ids, scratch.by_id);
  if (longest < static_cast<size_t>(params.dry_allowed_length)) return;
  CountMatches(ids, scratch.matches);
  const auto limit = static_cast<int32_t>(longest);
  const auto next = [&](size_t i) { return static_cast<size_t>(ids[ids.size() - i]); };
  for (size_t i = 1; i < ids.size(); ++i) {
    const int32_t length = std::min(scratch.matches[i], limit);
    if (length < params.dry_allowed_length) continue;
    int32_t& best = scratch.by_id[next(i)];
    best = std::max(best, length);
  }
  for (const int32_t id : breakers.singles) scratch.by_id[static_cast<size_t>(id)] = 0;
  for (size_t i = 1; i < ids.size(); ++i) {
    int32_t& best = scratch.by_id[next(i)];
    if (best == 0) continue;
    logits[next(i)] -= DryPenalty(params, best);
    best = 0;
  }
}

}  // namespace tq

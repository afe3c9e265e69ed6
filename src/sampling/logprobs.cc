#include "sampling/logprobs.h"

#include <algorithm>
#include <limits>

namespace tq {
namespace {

float Logprob(float logit, double log_sum) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (!(logit > -kInf)) return TokenLogprobs::kLeast;  // NaN too
  const float bounded = std::min(logit, std::numeric_limits<float>::max());
  return std::max(static_cast<float>(double{bounded} - log_sum), TokenLogprobs::kLeast);
}

}  // namespace

TokenLogprobs ComputeLogprobs(std::span<const float> logits, int32_t id, int num_top,
                              Candidates& scratch) {
  TokenLogprobs out;
  scratch.Collect(logits);
  if (scratch.empty()) {
    out.logprob = TokenLogprobs::kLeast;
    return out;
  }
  const double log_sum = scratch.LogSum();
  out.logprob = Logprob(logits[static_cast<size_t>(id)], log_sum);
  const auto most = static_cast<size_t>(num_top);
  if (most == 0) return out;
  // Rising ids: of equal logits the earlier one stays ahead.
  std::array<float, TokenLogprobs::kMaxTop> best;
  size_t count = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (count == most && !(logit > best[count - 1])) continue;
    if (!(logit > -std::numeric_limits<float>::infinity())) continue;
    if (count < most) ++count;
    size_t at = count - 1;
    for (; at > 0 && logit > best[at - 1]; --at) {
      best[at] = best[at - 1];
      out.top[at] = out.top[at - 1];
    }
    best[at] = logit;
    out.top[at] = {static_cast<int32_t>(i), Logprob(logit, log_sum)};
  }
  out.num_top = static_cast<int32_t>(count);
  return out;
}

}  // namespace tq

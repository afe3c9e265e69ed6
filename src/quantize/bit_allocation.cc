#include "quantize/bit_allocation.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace tq {
namespace {

// Relative squared error of Gaussian weights at kBitTiers, groups of 64 and searched scales.
constexpr std::array<double, 3> kDistortion = {0.1110, 0.0295, 0.0070};
constexpr size_t kMeasuredTier = 1;
static_assert(kBitTiers[kMeasuredTier] == kMeasuredBits);

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

double Bits(int64_t bytes, int64_t weights) {
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(weights, 1));
}

struct Step {
  size_t candidate = 0;
  size_t tier = 0;
  int64_t bytes = 0;
  double gain = 0;  // divergence removed
};

class Allocator {
 public:
  // divergence: of each candidate at kMeasuredBits. All start at `tier`.
  Allocator(const std::vector<BitCandidate>& candidates, const std::vector<double>& divergence,
            size_t tier)
      : candidates_(candidates), divergence_(divergence), tiers_(candidates.size(), tier) {
    for (const BitCandidate& candidate : candidates) bytes_ += candidate.bytes[tier];
  }

  int64_t bytes() const { return bytes_; }

  void Spend(int64_t most_bytes) {
    Step step;
    while (Best(most_bytes - bytes_, step)) {
      tiers_[step.candidate] = step.tier;
      bytes_ += step.bytes;
    }
  }

  BitPlan Plan() const {
    BitPlan plan;
    int64_t weights = 0;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      plan.bits[candidates_[c].path] = kBitTiers[tiers_[c]];
      plan.divergence += At(c, tiers_[c]);
      weights += candidates_[c].weights;
    }
    plan.bits_per_weight = Bits(bytes_, weights);
    return plan;
  }

 private:
  double At(size_t candidate, size_t tier) const {
    return divergence_[candidate] * kDistortion[tier] / kDistortion[kMeasuredTier];
  }

  // The first of equals: earlier layers.
  bool Best(int64_t room, Step& best) const {
    bool found = false;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      for (size_t tier = tiers_[c] + 1; tier < kBitTiers.size(); ++tier) {
        const int64_t bytes = candidates_[c].bytes[tier] - candidates_[c].bytes[tiers_[c]];
        const double gain = At(c, tiers_[c]) - At(c, tier);
        if (bytes > room) continue;
        const double rate = gain * static_cast<double>(best.bytes);
        if (found && rate <= best.gain * static_cast<double>(bytes)) continue;
        best = {c, tier, bytes, gain};
        found = true;
      }
    }
    return found;
  }

  const std::vector<BitCandidate>& candidates_;
  const std::vector<double>& divergence_;
  std::vector<size_t> tiers_;
  int64_t bytes_ = 0;
};

}  // namespace

std::string KindOfPath(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    if (IsNumber(name) || name == "model" || name == "language_model" || name == "layers") continue;
    names.push_back(name);
  }
  if (names.empty()) return "";
  const std::string last(names.back());
  return names.size() == 1 ? last : std::string(names[names.size() - 2]) + "." + last;
}

Result<BitPlan> AllocateBits(const std::vector<BitCandidate>& candidates,
                             const std::map<std::string, double>& divergences,
                             double target_bits_per_weight) {
  std::map<std::string, int64_t> weights_of;
  int64_t weights = 0;
  for (const BitCandidate& candidate : candidates) {
    weights_of[KindOfPath(candidate.path)] += candidate.weights;
    weights += candidate.weights;
  }
  std::vector<double> divergence;
  for (const BitCandidate& candidate : candidates) {
    const std::string kind = KindOfPath(candidate.path);
    const auto found = divergences.find(kind);
    if (found == divergences.end())
      return InvalidArgument(kind + ": expected a measured divergence, found none");
    const double share =
        static_cast<double>(candidate.weights) / static_cast<double>(weights_of[kind]);
    divergence.push_back(std::max(found->second, 0.0) * share);
  }
  const auto most_bytes =
      static_cast<int64_t>(target_bits_per_weight / 8 * static_cast<double>(weights));
  // Large matrices may leave room that no step fits into: a uniform width is the better start then.
  std::optional<BitPlan> best;
  for (size_t tier = 0; tier < kBitTiers.size(); ++tier) {
    Allocator allocator(candidates, divergence, tier);
    if (allocator.bytes() > most_bytes) break;
    allocator.Spend(most_bytes);
    BitPlan plan = allocator.Plan();
    if (!best || plan.divergence < best->divergence) best = std::move(plan);
  }
  if (best) return *std::move(best);
  return InvalidArgument(
      fmt::format("bits per weight: expected at least {:.3f} (all matrices at {} bits), found {}",
                  Allocator(candidates, divergence, 0).Plan().bits_per_weight, kBitTiers.front(),
                  target_bits_per_weight));
}

}  // namespace tq

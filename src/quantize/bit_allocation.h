// Which width every matrix gets so that a conversion meets a number of bits per weight with the
// least divergence from the original. Divergences add up over matrices and follow the distortion of
// the codes (docs/quality.md), so one measured number per kind of matrix is enough.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tq {

inline constexpr std::array<int, 3> kBitTiers = {2, 3, 4};
inline constexpr int kMeasuredBits = 3;

// "self_attn.v_proj", "switch_mlp.down_proj", "lm_head": the last two names of an output path that
// are no numbers, the model's own and "layers" left out.
std::string KindOfPath(std::string_view path);

// A matrix, or a stack of experts, as the conversion would write it.
struct BitCandidate {
  std::string path;
  int64_t weights = 0;
  std::array<int64_t, 3> bytes{};  // of kBitTiers
};

struct BitPlan {
  std::map<std::string, int> bits;  // path -> width
  double bits_per_weight = 0;       // bytes of the candidates * 8 / weights
  double divergence = 0;            // expected
};

// divergences: of each kind, when its matrices alone have kMeasuredBits. Greedy: from each
// uniform width that fits, always the step that removes most divergence per byte and still fits;
// the best of the outcomes.
// Errors: kInvalidArgument (the target is below the lowest tier; a kind without a divergence).
Result<BitPlan> AllocateBits(const std::vector<BitCandidate>& candidates,
                             const std::map<std::string, double>& divergences,
                             double target_bits_per_weight);

}  // namespace tq

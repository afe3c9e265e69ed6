#include "plan/streamed_experts.h"

#include <algorithm>

namespace tq {

StreamedExperts EstimateStreaming(const RecipeSize& size, int64_t other_bytes,
                                  const StreamingMachine& machine) {
  // Those of one token, twice: the next layer's are read while this one's compute.
  constexpr int64_t kLeastBudget = 500'000'000;
  StreamedExperts out;
  const int64_t resident = size.prepared_bytes - size.expert_bytes + other_bytes;
  const int64_t least =
      std::min(size.expert_bytes, std::max(kLeastBudget, 2 * size.expert_decode_bytes));
  out.least_bytes = resident + least;
  out.budget_bytes = std::clamp<int64_t>(machine.memory_bytes - resident, 0, size.expert_bytes);
  if (machine.disk_speed <= 0 || machine.bandwidth <= 0 || out.least_bytes > machine.memory_bytes) {
    return out;
  }
  const double missed =
      1.0 - static_cast<double>(out.budget_bytes) / static_cast<double>(size.expert_bytes);
  const double seconds =
      static_cast<double>(size.decode_bytes) / machine.bandwidth +
      missed * static_cast<double>(size.expert_decode_bytes) / machine.disk_speed;
  out.tokens_per_second = 1.0 / seconds;
  return out;
}

}  // namespace tq

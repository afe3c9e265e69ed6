#include "engine/checkpoint_rule.h"

#include <algorithm>
#include <limits>

#include "backend/step_plan.h"

namespace tq {
namespace {

// Chat templates rewrite up to this many tokens at the end of a prompt.
constexpr int64_t kRewrittenTokens = 8;

}  // namespace

int64_t CheckpointRule::Spacing(int64_t prompt_tokens) const {
  const int64_t most = std::max<int64_t>(max_count / 2, 1);
  int64_t spacing = interval;
  while (prompt_tokens / spacing > most) spacing *= 2;
  return spacing;
}

int64_t CheckpointRule::TailPosition(int64_t prompt_tokens) {
  return std::max<int64_t>(prompt_tokens - kRewrittenTokens, 0) / kPageTokens * kPageTokens;
}

bool CheckpointRule::ForMemory(int64_t at, int64_t prompt_tokens, int64_t branch) const {
  if (interval == 0) return false;
  return at % Spacing(prompt_tokens) == 0 || at == TailPosition(prompt_tokens) || at == branch;
}

bool CheckpointRule::ForDisk(int64_t at, int64_t prompt_tokens, int64_t branch) const {
  if (interval == 0) return false;
  return (disk_interval > 0 && at % disk_interval == 0) || at == TailPosition(prompt_tokens) ||
         at == branch;
}

int64_t CheckpointRule::Next(int64_t length, int64_t prompt_tokens, int64_t branch) const {
  int64_t next = std::numeric_limits<int64_t>::max();
  if (interval == 0) return next;
  const int64_t spacing = Spacing(prompt_tokens);
  for (const int64_t at : {(length / spacing + 1) * spacing, TailPosition(prompt_tokens), branch}) {
    if (at > length) next = std::min(next, at);
  }
  if (disk_interval > 0) next = std::min(next, (length / disk_interval + 1) * disk_interval);
  return next;
}

}  // namespace tq

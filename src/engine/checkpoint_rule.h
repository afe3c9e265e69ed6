// CheckpointRule: after which prompt tokens the state of recurrent layers is worth keeping. A chunk
// of prefill ends there.
#pragma once

#include <cstdint>

namespace tq {

struct CheckpointRule {
  int64_t interval = 0;       // of the regular positions, in tokens, whole pages; 0: keep nothing
  int64_t max_count = 0;      // checkpoints that the cache can hold
  int64_t disk_interval = 0;  // of those that only the disk keeps, whole pages; 0: none

  // Regular positions are multiples of `interval`, or of a power of two times it, so that one
  // prompt takes at most half of the checkpoints.
  int64_t Spacing(int64_t prompt_tokens) const;
  // The last page border that the next turn of a conversation still shares: templates write the
  // last few tokens of a prompt anew.
  static int64_t TailPosition(int64_t prompt_tokens);
  // Which cache a position is for. `branch`: where another prompt went another way.
  bool ForMemory(int64_t at, int64_t prompt_tokens, int64_t branch) const;
  bool ForDisk(int64_t at, int64_t prompt_tokens, int64_t branch) const;
  // The next position after `length` for either: a regular one, the tail, or the branch. A large
  // number when there is none.
  int64_t Next(int64_t length, int64_t prompt_tokens, int64_t branch) const;
};

}  // namespace tq

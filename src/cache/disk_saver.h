// DiskSaver: what of the prefix tree still has to go to the disk, and its copies. A node that is
// evicted before its turn is not saved. Thread: engine.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cache/disk_cache.h"
#include "cache/kv_cache.h"
#include "cache/prefix_tree.h"

namespace tq {

class DiskSaver {
 public:
  // All must outlive it.
  DiskSaver(DiskCache& disk, PrefixTree& tree, const KvCache& kv)
      : disk_(disk), tree_(tree), kv_(kv) {}

  // Saves `node`, whose last token is number num_tokens, and those before it; with_state: also the
  // state that is its checkpoint.
  void SavePath(int32_t node, int64_t num_tokens, bool with_state);
  // Likewise, with the state in `slot`, which is copied now if there is room for it.
  void SaveState(int32_t node, int64_t num_tokens, int32_t slot);

  // Copies as much as there is room for. Call it between steps.
  void Pump();
  // Copies everything. Waits for the disk.
  void Flush();

 private:
  const DiskKey& KeyOf(int32_t node) const;
  // Null: all copies are on their way.
  std::unique_ptr<DiskWrite> Describe(int32_t node, DiskKind kind);
  void Copy(std::unique_ptr<DiskWrite> write, const std::vector<std::span<std::byte>>& parts);
  // False: no room for its copies now.
  bool PostNode(int32_t node);

  DiskCache& disk_;
  PrefixTree& tree_;
  const KvCache& kv_;
  struct Waiting {
    int32_t node;
    DiskKey key;
  };
  std::deque<Waiting> waiting_;  // ancestors first
  std::vector<int32_t> path_;    // reused
};

}  // namespace tq

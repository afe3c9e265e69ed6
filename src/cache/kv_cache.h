// KvCache: what all layers remember of the running sequences. Two kinds of memory: pages of
// per-token data (keys, values, index keys), handed out by page id, and slots of per-sequence state
// (recurrent layers). A page id or a slot is valid in every layer. Memory is reserved at creation
// and committed when touched. Thread: engine.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/status.h"

namespace tq {

// What one layer wants to remember.
struct CacheNeeds {
  std::vector<KvLayout> paged;
  int64_t state_floats = 0;  // per sequence
};

struct LayerCache {
  struct Paged {
    KvLayout layout;
    Buffer pages;
  };
  std::vector<Paged> paged;
  int64_t state_floats = 0;
  Buffer states;  // [slots, state_floats]

  // The part of each slot that begins at `offset` floats.
  StateRef State(int64_t offset) {
    return {reinterpret_cast<float*>(states.data()) + offset, state_floats};
  }
};

class KvCache {
 public:
  // Errors: kOutOfMemory.
  static Result<KvCache> Create(const std::vector<CacheNeeds>& layers, int64_t num_pages,
                                int64_t num_slots);

  LayerCache& layer(size_t i) { return layers_[i]; }
  int64_t num_pages() const { return num_pages_; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t bytes_per_page() const;  // all layers
  int64_t bytes_per_slot() const;  // all layers

  // Lowest free ids first, so that neighbours stay neighbours. False (and no change) when there are
  // not enough.
  bool Allocate(int64_t count, std::vector<int32_t>& pages);
  void Free(const std::vector<int32_t>& pages);

  // The lowest free slot, or -1. Its content is whatever the last owner left: a sequence that
  // starts takes it as zero (backend/ops_recurrent.h).
  int32_t AllocateSlot();
  void FreeSlot(int32_t slot);

  static int64_t PagesFor(int64_t num_tokens) {
    return (num_tokens + kPageTokens - 1) / kPageTokens;
  }

 private:
  std::vector<LayerCache> layers_;
  std::vector<int32_t> free_;        // descending, so that the lowest is at the back
  std::vector<int32_t> free_slots_;  // same
  int64_t num_pages_ = 0;
};

}  // namespace tq

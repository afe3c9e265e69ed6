// KvCache: what all layers remember of the sequences. Two kinds of memory: pages of per-token data
// (keys, values, index keys), handed out by page id, and slots of per-sequence state (recurrent
// layers). A page id or a slot is valid in every layer. A page may have several holders; it is then
// read, never written. Memory is reserved at creation and committed when touched. Thread: engine.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/status.h"
#include "cache/id_pool.h"

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
  int64_t num_pages() const { return pages_.size(); }
  int64_t free_pages() const { return pages_.num_free(); }
  int64_t free_slots() const { return slots_.num_free(); }
  int64_t bytes_per_page() const { return bytes_per_page_; }  // all layers
  // All layers; 0: no layer is recurrent.
  int64_t bytes_per_slot() const { return bytes_per_slot_; }
  bool has_state() const { return bytes_per_slot_ > 0; }
  static int64_t BytesPerPage(const std::vector<CacheNeeds>& layers);
  static int64_t BytesPerSlot(const std::vector<CacheNeeds>& layers);

  // Lowest free ids first, each with one holder. False (and no change) when there are not enough.
  bool Allocate(int64_t count, std::vector<int32_t>& pages);
  void Hold(int32_t page) { pages_.Hold(page); }
  // The last holder's Drop frees the page.
  void Drop(int32_t page) { pages_.Drop(page); }
  void Free(const std::vector<int32_t>& pages);
  int32_t holders(int32_t page) const { return pages_.holders(page); }
  // The bytes of a page in every layer. Requires: nobody else holds `to`.
  void CopyPage(int32_t from, int32_t to);

  // The lowest free slot, or -1. Its content is whatever the last owner left: a sequence that
  // starts takes it as zero (backend/ops_recurrent.h).
  int32_t AllocateSlot() { return slots_.Take(); }
  void FreeSlot(int32_t slot) { slots_.Drop(slot); }
  // The state in every layer.
  void CopySlot(int32_t from, int32_t to);

  static int64_t PagesFor(int64_t num_tokens) {
    return (num_tokens + kPageTokens - 1) / kPageTokens;
  }

 private:
  std::vector<LayerCache> layers_;
  int64_t bytes_per_page_ = 0;
  int64_t bytes_per_slot_ = 0;
  IdPool pages_;
  IdPool slots_;
};

}  // namespace tq

// KvCache: what all layers remember of the sequences. Two kinds of memory: pages of per-token data
// (keys, values, index keys), handed out by page id, and slots of per-sequence state (recurrent
// layers). A page id or a slot is valid in every layer. A page may have several holders; it is then
// read, never written. Memory is reserved at creation and committed when touched. Thread: engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
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
    Buffer exact;  // of layouts with exact pages
    const int32_t* exact_slots = nullptr;
    KvExactPages exact_pages() const { return {exact.data(), exact_slots}; }
    // Where the content of a page is: its exact slot if it has one, else its packed bytes.
    std::span<std::byte> Page(int32_t page) const;
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
  // num_exact: how many of the pages may be exact ones (KvLayout::num_exact_pages) at a time; -1:
  // those of num_slots sequences. Errors: kOutOfMemory.
  static Result<KvCache> Create(const std::vector<CacheNeeds>& layers, int64_t num_pages,
                                int64_t num_slots, int64_t num_exact = -1);

  LayerCache& layer(size_t i) { return layers_[i]; }
  int64_t num_pages() const { return pages_.size(); }
  int64_t free_pages() const { return pages_.num_free(); }
  int64_t free_slots() const { return slots_.num_free(); }
  int64_t bytes_per_page() const { return bytes_per_page_; }  // all layers
  // All layers; 0: no layer is recurrent.
  int64_t bytes_per_slot() const { return bytes_per_slot_; }
  bool has_state() const { return bytes_per_slot_ > 0; }
  // Of the content of a page (PageParts), exact ones included.
  int64_t largest_page_bytes() const { return largest_page_bytes_; }
  static int64_t LargestPageBytes(const std::vector<CacheNeeds>& layers);
  static int64_t BytesPerPage(const std::vector<CacheNeeds>& layers);
  static int64_t BytesPerSlot(const std::vector<CacheNeeds>& layers);
  // Pages of a sequence that are exact; bytes of one of them, all layers.
  static int64_t ExactPages(const std::vector<CacheNeeds>& layers);
  static int64_t BytesPerExactPage(const std::vector<CacheNeeds>& layers);

  // Lowest free ids first, each with one holder. The first of them will hold the positions from 64
  // * `first` on; -1: behind `pages`. False (and no change) when there are not enough.
  bool Allocate(int64_t count, std::vector<int32_t>& pages, int64_t first = -1);
  // Whether the next page for positions from 64 * `first` on would be there.
  bool HasExact(int64_t count, int64_t first) const {
    return NumExact(count, first) <= exact_.num_free();
  }
  void Hold(int32_t page) { pages_.Hold(page); }
  // The last holder's Drop frees the page.
  void Drop(int32_t page);
  void Free(const std::vector<int32_t>& pages);
  int32_t holders(int32_t page) const { return pages_.holders(page); }
  // The bytes of a page in every layer. Requires: nobody else holds `to`; both are exact or none.
  void CopyPage(int32_t from, int32_t to);

  // Where the bytes of a page, or of a slot, are: one part for each kind of data of each layer.
  // Thread: any, while the page or slot is lent to it.
  std::vector<std::span<std::byte>> PageParts(int32_t page) const;
  std::vector<std::span<std::byte>> SlotParts(int32_t slot) const;

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
  // How many of the pages [first, first + count) of a sequence are exact.
  int64_t NumExact(int64_t count, int64_t first) const {
    return std::clamp<int64_t>(num_exact_pages_ - first, 0, count);
  }

  std::vector<LayerCache> layers_;
  int64_t num_exact_pages_ = 0;  // of a sequence
  IdPool exact_;
  std::vector<int32_t> exact_slots_;  // by page; -1: not an exact one
  int64_t bytes_per_page_ = 0;
  int64_t largest_page_bytes_ = 0;
  int64_t bytes_per_slot_ = 0;
  IdPool pages_;
  IdPool slots_;
};

}  // namespace tq

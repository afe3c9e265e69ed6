#include "cache/kv_cache.h"

#include <algorithm>
#include <functional>

namespace tq {
namespace {

std::vector<int32_t> Descending(int64_t n) {
  std::vector<int32_t> out;
  out.reserve(static_cast<size_t>(n));
  for (int64_t i = n; i-- > 0;) out.push_back(static_cast<int32_t>(i));
  return out;
}

}  // namespace

Result<KvCache> KvCache::Create(const std::vector<CacheNeeds>& layers, int64_t num_pages,
                                int64_t num_slots) {
  KvCache cache;
  cache.num_pages_ = num_pages;
  for (const CacheNeeds& needs : layers) {
    LayerCache layer;
    for (const KvLayout& layout : needs.paged) {
      TQ_ASSIGN_OR_RETURN(Buffer pages,
                          Buffer::Allocate(static_cast<size_t>(layout.page_bytes() * num_pages)));
      layer.paged.push_back({layout, std::move(pages)});
    }
    layer.state_floats = needs.state_floats;
    if (needs.state_floats > 0) {
      const int64_t bytes = needs.state_floats * num_slots * static_cast<int64_t>(sizeof(float));
      TQ_ASSIGN_OR_RETURN(layer.states, Buffer::Allocate(static_cast<size_t>(bytes)));
    }
    cache.layers_.push_back(std::move(layer));
  }
  cache.free_ = Descending(num_pages);
  cache.free_slots_ = Descending(num_slots);
  return cache;
}

int64_t KvCache::bytes_per_page() const {
  int64_t bytes = 0;
  for (const LayerCache& layer : layers_) {
    for (const LayerCache::Paged& paged : layer.paged) bytes += paged.layout.page_bytes();
  }
  return bytes;
}

int64_t KvCache::bytes_per_slot() const {
  int64_t floats = 0;
  for (const LayerCache& layer : layers_) floats += layer.state_floats;
  return floats * static_cast<int64_t>(sizeof(float));
}

bool KvCache::Allocate(int64_t count, std::vector<int32_t>& pages) {
  if (count > free_pages()) return false;
  for (int64_t i = 0; i < count; ++i) {
    pages.push_back(free_.back());
    free_.pop_back();
  }
  return true;
}

void KvCache::Free(const std::vector<int32_t>& pages) {
  free_.insert(free_.end(), pages.begin(), pages.end());
  std::sort(free_.begin(), free_.end(), std::greater<>());
}

int32_t KvCache::AllocateSlot() {
  if (free_slots_.empty()) return -1;
  const int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void KvCache::FreeSlot(int32_t slot) {
  free_slots_.push_back(slot);
  std::sort(free_slots_.begin(), free_slots_.end(), std::greater<>());
}

}  // namespace tq

#include "cache/kv_cache.h"

#include <cstring>

#include "base/check.h"

namespace tq {

Result<KvCache> KvCache::Create(const std::vector<CacheNeeds>& layers, int64_t num_pages,
                                int64_t num_slots) {
  KvCache cache;
  cache.bytes_per_page_ = BytesPerPage(layers);
  cache.bytes_per_slot_ = BytesPerSlot(layers);
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
  cache.pages_ = IdPool(num_pages);
  cache.slots_ = IdPool(num_slots);
  return cache;
}

int64_t KvCache::BytesPerPage(const std::vector<CacheNeeds>& layers) {
  int64_t bytes = 0;
  for (const CacheNeeds& needs : layers) {
    for (const KvLayout& layout : needs.paged) bytes += layout.page_bytes();
  }
  return bytes;
}

int64_t KvCache::BytesPerSlot(const std::vector<CacheNeeds>& layers) {
  int64_t floats = 0;
  for (const CacheNeeds& needs : layers) floats += needs.state_floats;
  return floats * static_cast<int64_t>(sizeof(float));
}

bool KvCache::Allocate(int64_t count, std::vector<int32_t>& pages) {
  if (count > free_pages()) return false;
  for (int64_t i = 0; i < count; ++i) pages.push_back(pages_.Take());
  return true;
}

void KvCache::Free(const std::vector<int32_t>& pages) {
  for (const int32_t page : pages) pages_.Drop(page);
}

void KvCache::CopyPage(int32_t from, int32_t to) {
  TQ_DCHECK(holders(to) == 1);
  for (LayerCache& layer : layers_) {
    for (LayerCache::Paged& paged : layer.paged) {
      const int64_t bytes = paged.layout.page_bytes();
      std::byte* pages = paged.pages.data();
      std::memcpy(pages + to * bytes, pages + from * bytes, static_cast<size_t>(bytes));
    }
  }
}

void KvCache::CopySlot(int32_t from, int32_t to) {
  for (LayerCache& layer : layers_) {
    if (layer.state_floats == 0) continue;
    const int64_t bytes = layer.state_floats * static_cast<int64_t>(sizeof(float));
    std::byte* states = layer.states.data();
    std::memcpy(states + to * bytes, states + from * bytes, static_cast<size_t>(bytes));
  }
}

}  // namespace tq

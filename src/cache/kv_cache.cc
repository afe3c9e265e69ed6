#include "cache/kv_cache.h"

#include <algorithm>
#include <functional>

namespace tq {

Result<KvCache> KvCache::Create(const std::vector<KvLayout>& layers, int64_t num_pages) {
  KvCache cache;
  cache.num_pages_ = num_pages;
  for (const KvLayout& layout : layers) {
    TQ_ASSIGN_OR_RETURN(Buffer buffer,
                        Buffer::Allocate(static_cast<size_t>(layout.page_bytes() * num_pages)));
    cache.layers_.push_back({layout, std::move(buffer)});
  }
  cache.free_.reserve(static_cast<size_t>(num_pages));
  for (int64_t i = num_pages; i-- > 0;) cache.free_.push_back(static_cast<int32_t>(i));
  return cache;
}

int64_t KvCache::bytes_per_page() const {
  int64_t bytes = 0;
  for (const LayerCache& layer : layers_) bytes += layer.layout.page_bytes();
  return bytes;
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

}  // namespace tq

#include "cache/kv_cache.h"

#include <cstring>

#include "base/check.h"

namespace tq {

Result<KvCache> KvCache::Create(const std::vector<CacheNeeds>& layers, int64_t num_pages,
                                int64_t num_slots, int64_t num_exact) {
  KvCache cache;
  cache.num_exact_pages_ = ExactPages(layers);
  if (num_exact < 0) num_exact = cache.num_exact_pages_ * num_slots;
  num_exact = cache.num_exact_pages_ == 0 ? 0 : std::min(num_exact, num_pages);
  cache.exact_slots_.assign(static_cast<size_t>(num_pages), -1);
  cache.bytes_per_page_ = BytesPerPage(layers);
  cache.largest_page_bytes_ = LargestPageBytes(layers);
  cache.bytes_per_slot_ = BytesPerSlot(layers);
  for (const CacheNeeds& needs : layers) {
    LayerCache layer;
    for (const KvLayout& layout : needs.paged) {
      TQ_ASSIGN_OR_RETURN(Buffer pages,
                          Buffer::Allocate(static_cast<size_t>(layout.page_bytes() * num_pages)));
      Buffer exact;
      if (layout.num_exact_pages() > 0) {
        const int64_t bytes = layout.exact_layout().page_bytes() * num_exact;
        TQ_ASSIGN_OR_RETURN(exact, Buffer::Allocate(static_cast<size_t>(bytes)));
      }
      layer.paged.push_back(
          {layout, std::move(pages), std::move(exact), cache.exact_slots_.data()});
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
  cache.exact_ = IdPool(num_exact);
  return cache;
}

int64_t KvCache::BytesPerPage(const std::vector<CacheNeeds>& layers) {
  int64_t bytes = 0;
  for (const CacheNeeds& needs : layers) {
    for (const KvLayout& layout : needs.paged) bytes += layout.page_bytes();
  }
  return bytes;
}

int64_t KvCache::LargestPageBytes(const std::vector<CacheNeeds>& layers) {
  int64_t bytes = 0;
  for (const CacheNeeds& needs : layers) {
    for (const KvLayout& layout : needs.paged) {
      const int64_t exact = layout.num_exact_pages() > 0 ? layout.exact_layout().page_bytes() : 0;
      bytes += std::max(layout.page_bytes(), exact);
    }
  }
  return bytes;
}

int64_t KvCache::BytesPerSlot(const std::vector<CacheNeeds>& layers) {
  int64_t floats = 0;
  for (const CacheNeeds& needs : layers) floats += needs.state_floats;
  return floats * static_cast<int64_t>(sizeof(float));
}

int64_t KvCache::ExactPages(const std::vector<CacheNeeds>& layers) {
  int64_t most = 0;
  for (const CacheNeeds& needs : layers) {
    for (const KvLayout& layout : needs.paged) most = std::max(most, layout.num_exact_pages());
  }
  return most;
}

int64_t KvCache::BytesPerExactPage(const std::vector<CacheNeeds>& layers) {
  int64_t bytes = 0;
  for (const CacheNeeds& needs : layers) {
    for (const KvLayout& layout : needs.paged) {
      if (layout.num_exact_pages() > 0) bytes += layout.exact_layout().page_bytes();
    }
  }
  return bytes;
}

std::span<std::byte> LayerCache::Paged::Page(int32_t page) const {
  const int32_t slot = exact_slots == nullptr || exact.data() == nullptr ? -1 : exact_slots[page];
  const int64_t bytes = slot < 0 ? layout.page_bytes() : layout.exact_layout().page_bytes();
  std::byte* begin = slot < 0 ? pages.data() + page * bytes : exact.data() + slot * bytes;
  return {begin, static_cast<size_t>(bytes)};
}

bool KvCache::Allocate(int64_t count, std::vector<int32_t>& pages, int64_t first) {
  if (first < 0) first = static_cast<int64_t>(pages.size());
  if (count > free_pages() || !HasExact(count, first)) return false;
  const int64_t num_exact = NumExact(count, first);
  for (int64_t i = 0; i < count; ++i) {
    pages.push_back(pages_.Take());
    if (i < num_exact) exact_slots_[static_cast<size_t>(pages.back())] = exact_.Take();
  }
  return true;
}

void KvCache::Drop(int32_t page) {
  pages_.Drop(page);
  int32_t& slot = exact_slots_[static_cast<size_t>(page)];
  if (slot < 0 || pages_.holders(page) > 0) return;
  exact_.Drop(slot);
  slot = -1;
}

void KvCache::Free(const std::vector<int32_t>& pages) {
  for (const int32_t page : pages) Drop(page);
}

void KvCache::CopyPage(int32_t from, int32_t to) {
  TQ_DCHECK(holders(to) == 1);
  for (LayerCache& layer : layers_) {
    for (LayerCache::Paged& paged : layer.paged) {
      const std::span<const std::byte> source = paged.Page(from);
      TQ_DCHECK(paged.Page(to).size() == source.size());
      std::memcpy(paged.Page(to).data(), source.data(), source.size());
    }
  }
}

std::vector<std::span<std::byte>> KvCache::PageParts(int32_t page) const {
  std::vector<std::span<std::byte>> parts;
  for (const LayerCache& layer : layers_) {
    for (const LayerCache::Paged& paged : layer.paged) parts.push_back(paged.Page(page));
  }
  return parts;
}

std::vector<std::span<std::byte>> KvCache::SlotParts(int32_t slot) const {
  std::vector<std::span<std::byte>> parts;
  for (const LayerCache& layer : layers_) {
    if (layer.state_floats == 0) continue;
    const int64_t bytes = layer.state_floats * static_cast<int64_t>(sizeof(float));
    parts.emplace_back(layer.states.data() + slot * bytes, static_cast<size_t>(bytes));
  }
  return parts;
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

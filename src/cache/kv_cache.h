// KvCache: the KV pages of all layers and the pool that hands page ids out. A page id is valid in
// every layer. Memory is reserved at creation and committed when touched. Thread: engine.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/status.h"

namespace tq {

// The pages of one layer.
struct LayerCache {
  KvLayout layout;
  Buffer pages;
};

class KvCache {
 public:
  // Errors: kOutOfMemory.
  static Result<KvCache> Create(const std::vector<KvLayout>& layers, int64_t num_pages);

  LayerCache& layer(size_t i) { return layers_[i]; }
  int64_t num_pages() const { return num_pages_; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t bytes_per_page() const;  // all layers

  // Lowest free ids first, so that neighbours stay neighbours. False (and no change) when there are
  // not enough.
  bool Allocate(int64_t count, std::vector<int32_t>& pages);
  void Free(const std::vector<int32_t>& pages);

  static int64_t PagesFor(int64_t num_tokens) {
    return (num_tokens + kPageTokens - 1) / kPageTokens;
  }

 private:
  std::vector<LayerCache> layers_;
  std::vector<int32_t> free_;  // descending, so that the lowest is at the back
  int64_t num_pages_ = 0;
};

}  // namespace tq

#include "cache/id_pool.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace tq {

IdPool::IdPool(int64_t size)
    : free_(static_cast<size_t>(size)), holders_(static_cast<size_t>(size)) {
  std::iota(free_.begin(), free_.end(), 0);  // ascending is a heap already
}

int32_t IdPool::Take() {
  if (free_.empty()) return -1;
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t id = free_.back();
  free_.pop_back();
  holders_[static_cast<size_t>(id)] = 1;
  return id;
}

void IdPool::Hold(int32_t id) {
  TQ_DCHECK(holders(id) > 0);
  ++holders_[static_cast<size_t>(id)];
}

void IdPool::Drop(int32_t id) {
  TQ_CHECK(holders(id) > 0);
  if (--holders_[static_cast<size_t>(id)] > 0) return;
  free_.push_back(id);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace tq

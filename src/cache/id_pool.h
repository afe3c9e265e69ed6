// IdPool: the ids [0, size) of pages or slots: which are free, and how many hold each of the
// others. Nothing is allocated after construction. Thread: engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tq {

class IdPool {
 public:
  explicit IdPool(int64_t size = 0);

  int64_t size() const { return static_cast<int64_t>(holders_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int32_t holders(int32_t id) const { return holders_[static_cast<size_t>(id)]; }

  // The lowest free id, so that neighbours stay neighbours; one holder. -1 when none is free.
  int32_t Take();
  // One more holder. Requires: somebody holds it.
  void Hold(int32_t id);
  // One holder fewer; the last one frees it.
  void Drop(int32_t id);

 private:
  std::vector<int32_t> free_;     // a heap, the lowest first
  std::vector<int32_t> holders_;  // per id; 0: free
};

}  // namespace tq

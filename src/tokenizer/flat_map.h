// Hash map from 64-bit keys to 32-bit values for the hot lookups (merges, ids, tries): one
// allocation, linear probing, no erasing. The key ~0 is reserved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tq::tok {

class FlatMap {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  void Reserve(size_t count) {
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    if (slots > slots_.size()) Rehash(slots);
  }
  // Overwrites an older value of the key.
  void Set(uint64_t key, uint32_t value) {
    Reserve(size_ + 1);
    Slot& slot = slots_[Locate(key)];
    if (slot.key == kEmpty) {
      slot.key = key;
      ++size_;
    }
    slot.value = value;
  }
  uint32_t Get(uint64_t key) const {
    if (slots_.empty()) return kNone;
    const Slot& slot = slots_[Locate(key)];
    return slot.key == kEmpty ? kNone : slot.value;
  }
  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    uint32_t value = kNone;
  };

  size_t Locate(uint64_t key) const {
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    const size_t mask = slots_.size() - 1;
    size_t at = static_cast<size_t>(hash) & mask;
    while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  void Rehash(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) slots_[Locate(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace tq::tok

// WordCache: the ids of the words seen lately, for one Encode call. Bounded in memory and in the
// cost of a lookup, whatever the words are. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tq::tok {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 64;  // longer words are rarely seen twice

  // Appends the ids of a word that is known. False: it is not.
  bool Find(std::string_view word, std::vector<int32_t>* ids) const {
    if (word.size() > kMaxWordBytes || slots_.empty()) return false;
    const uint32_t hash = Hash(word);
    for (size_t probe = 0; probe < kMaxProbes; ++probe) {
      const Slot& slot = slots_[(hash + probe) & (slots_.size() - 1)];
      if (slot.num_ids == 0) return false;
      if (slot.hash != hash || slot.num_bytes != word.size()) continue;
      if (std::memcmp(text_.data() + slot.text, word.data(), word.size()) != 0) continue;
      const auto first = ids_.begin() + slot.ids;
      ids->insert(ids->end(), first, first + slot.num_ids);
      return true;
    }
    return false;
  }

  // Requires: the word is not known. A word without ids, or one too many for its place, is dropped.
  void Add(std::string_view word, std::span<const int32_t> ids) {
    if (word.size() > kMaxWordBytes || ids.empty() || ids.size() > kMaxWordBytes) return;
    MakeRoom();
    const Slot slot = {Hash(word), static_cast<uint32_t>(text_.size()),
                       static_cast<uint32_t>(ids_.size()), static_cast<uint8_t>(word.size()),
                       static_cast<uint8_t>(ids.size())};
    if (!Place(slot)) return;
    text_ += word;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++size_;
  }

 private:
  static constexpr size_t kMinSlots = 256;
  static constexpr size_t kMaxSlots = size_t{1} << 16;
  static constexpr size_t kMaxProbes = 8;

  struct Slot {
    uint32_t hash;
    uint32_t text;  // where its bytes and its ids begin
    uint32_t ids;
    uint8_t num_bytes;
    uint8_t num_ids;  // 0: the slot is empty
  };

  static uint32_t Hash(std::string_view word) {
    uint64_t hash = word.size() * 0x9E3779B97F4A7C15u;
    for (size_t at = 0; at < word.size(); at += 8) {
      uint64_t part = 0;
      std::memcpy(&part, word.data() + at, std::min<size_t>(8, word.size() - at));
      hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return static_cast<uint32_t>(hash >> 32);
  }

  bool Place(const Slot& slot) {
    for (size_t probe = 0; probe < kMaxProbes; ++probe) {
      Slot& at = slots_[(slot.hash + probe) & (slots_.size() - 1)];
      if (at.num_ids != 0) continue;
      at = slot;
      return true;
    }
    return false;
  }

  // Half of the slots stay empty. A full cache starts anew: a text changes its words on the way.
  void MakeRoom() {
    if (2 * (size_ + 1) <= slots_.size()) return;
    std::vector<Slot> old(slots_.size() >= kMaxSlots ? kMinSlots
                                                     : std::max(kMinSlots, 2 * slots_.size()));
    old.swap(slots_);
    if (old.size() >= kMaxSlots) {
      size_ = 0;
      text_.clear();
      ids_.clear();
      return;
    }
    for (const Slot& slot : old) {
      if (slot.num_ids != 0) Place(slot);  // what finds no place is only forgotten
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  std::string text_;
  std::vector<int32_t> ids_;
};

}  // namespace tq::tok

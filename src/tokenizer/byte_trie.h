// ByteTrie: a set of texts with a value each, found byte by byte from a position of a longer text.
// Filled once, then constant; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/flat_map.h"

namespace tq::tok {

class ByteTrie {
 public:
  static constexpr uint32_t kNone = FlatMap::kNone;

  ByteTrie() { roots_.fill(kNone); }

  // Of two values for one text the first stays. An empty text is never found.
  void Insert(std::string_view text, uint32_t value) {
    if (text.empty()) return;
    uint32_t node = kNone;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      uint32_t child = i == 0 ? roots_[byte] : child_.Get(Key(node, byte));
      if (child == kNone) {
        child = static_cast<uint32_t>(value_of_node_.size());
        value_of_node_.push_back(kNone);
        if (i == 0) {
          roots_[byte] = child;
        } else {
          child_.Set(Key(node, byte), child);
        }
      }
      node = child;
    }
    if (value_of_node_[node] == kNone) value_of_node_[node] = value;
  }

  // Calls found(length, value) for each text that `text` starts with, the shortest first.
  template <typename Found>
  void ForEachPrefix(std::string_view text, Found&& found) const {
    if (text.empty()) return;
    uint32_t node = roots_[static_cast<unsigned char>(text[0])];
    for (size_t length = 1; node != kNone; ++length) {
      if (value_of_node_[node] != kNone) found(length, value_of_node_[node]);
      if (length == text.size()) return;
      node = child_.Get(Key(node, static_cast<unsigned char>(text[length])));
    }
  }

  // The value of the longest text that `text` starts with and its length; kNone: none.
  uint32_t Longest(std::string_view text, size_t* length) const {
    uint32_t best = kNone;
    ForEachPrefix(text, [&](size_t found_length, uint32_t value) {
      best = value;
      *length = found_length;
    });
    return best;
  }

 private:
  static uint64_t Key(uint32_t node, unsigned char byte) {
    return static_cast<uint64_t>(node) << 8 | byte;
  }

  std::array<uint32_t, 256> roots_;  // most walks end here
  FlatMap child_;                    // node << 8 | byte -> node
  std::vector<uint32_t> value_of_node_;
};

}  // namespace tq::tok

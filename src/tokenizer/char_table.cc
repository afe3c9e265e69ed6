#include "tokenizer/char_table.h"

#include <algorithm>
#include <map>

namespace tq::tok {
namespace {

constexpr size_t kNumChars = CharSet::kMaxChar + 1;

// Where the mask changes: (code point, bit) toggles, sorted.
std::vector<std::pair<uint32_t, uint64_t>> Toggles(std::span<const CharSet> sets) {
  std::vector<std::pair<uint32_t, uint64_t>> out;
  for (size_t i = 0; i < sets.size(); ++i) {
    for (const CharSet::Range& range : sets[i].ranges()) {
      out.emplace_back(range.first, uint64_t{1} << i);
      out.emplace_back(range.last + 1, uint64_t{1} << i);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::optional<CharTable> CharTable::Build(std::span<const CharSet> sets) {
  if (sets.size() > kMaxSets) return std::nullopt;
  CharTable table;
  std::map<uint64_t, uint8_t> index_of_mask;
  std::vector<uint8_t> flat(kNumChars);
  const auto toggles = Toggles(sets);
  uint64_t mask = 0;
  uint32_t from = 0;
  for (size_t i = 0; i <= toggles.size(); ++i) {
    const auto to = i < toggles.size() ? toggles[i].first : static_cast<uint32_t>(kNumChars);
    if (to > from) {
      const auto [it, is_new] =
          index_of_mask.emplace(mask, static_cast<uint8_t>(table.masks_.size()));
      if (is_new && table.masks_.size() == 256) return std::nullopt;
      if (is_new) table.masks_.push_back(mask);
      std::fill(flat.begin() + from, flat.begin() + to, it->second);
      from = to;
    }
    if (i < toggles.size()) mask ^= toggles[i].second;
  }
  std::map<std::string_view, uint16_t> index_of_block;
  for (size_t at = 0; at < kNumChars; at += kBlockSize) {
    const std::string_view block(reinterpret_cast<const char*>(flat.data()) + at, kBlockSize);
    const auto [it, is_new] =
        index_of_block.emplace(block, static_cast<uint16_t>(index_of_block.size()));
    if (is_new) table.blocks_.insert(table.blocks_.end(), block.begin(), block.end());
    table.block_of_.push_back(it->second);
  }
  for (size_t c = 0; c < table.ascii_.size(); ++c) table.ascii_[c] = table.masks_[flat[c]];
  return table;
}

}  // namespace tq::tok

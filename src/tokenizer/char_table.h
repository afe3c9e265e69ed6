// CharTable: which of up to 64 sets a code point belongs to, as a bit mask, in constant time.
// Filled once, then constant; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/char_set.h"
#include "tokenizer/unicode.h"

namespace tq::tok {

class CharTable {
 public:
  static constexpr size_t kMaxSets = 64;

  // Bit i: the code point is in sets[i]. Nothing when there are too many sets, or too many
  // combinations of them.
  static std::optional<CharTable> Build(std::span<const CharSet> sets);

  uint64_t Mask(char32_t c) const {
    if (c < ascii_.size()) return ascii_[c];
    return masks_[blocks_[static_cast<size_t>(block_of_[c >> kBlockBits]) << kBlockBits |
                          (c & (kBlockSize - 1))]];
  }
  // Of the character at text[*pos]; moves *pos behind it.
  uint64_t Next(std::string_view text, size_t* pos) const {
    const auto byte = static_cast<unsigned char>(text[*pos]);
    if (byte < 0x80) {
      ++*pos;
      return ascii_[byte];
    }
    return Mask(NextChar(text, pos));
  }

 private:
  static constexpr int kBlockBits = 7;
  static constexpr size_t kBlockSize = size_t{1} << kBlockBits;

  std::array<uint64_t, 128> ascii_{};
  std::vector<uint16_t> block_of_;  // code point / 128 -> block
  std::vector<uint8_t> blocks_;     // indexes of masks_
  std::vector<uint64_t> masks_;     // the combinations that occur
};

}  // namespace tq::tok

#include "tokenizer/charsmap.h"

#include <algorithm>

#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

// A unit of the array: bits 0-7 and 31 the label, bit 8 whether a value follows, bit 9 the shift of
// the offset in bits 10-30. A value is a unit with bit 31 set.
constexpr uint32_t Label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
constexpr bool HasValue(uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }

uint32_t ReadU32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

Result<Charsmap> Charsmap::Parse(std::string_view blob, const std::string& where) {
  Charsmap map;
  if (blob.empty()) return map;
  if (blob.size() < 4) {
    return Corrupt(where + ": expected a size in 4 bytes, found " + std::to_string(blob.size()) +
                   " bytes");
  }
  const size_t trie_bytes = ReadU32(blob);
  blob.remove_prefix(4);
  if (trie_bytes > blob.size() || trie_bytes % 4 != 0 || trie_bytes == 0) {
    return Corrupt(where + ": expected a trie of at most " + std::to_string(blob.size()) +
                   " bytes, found one of " + std::to_string(trie_bytes));
  }
  map.units_.reserve(trie_bytes / 4);
  for (size_t at = 0; at < trie_bytes; at += 4) map.units_.push_back(ReadU32(blob.substr(at)));
  map.contents_ = blob.substr(trie_bytes);
  if (!IsUtf8(map.contents_)) return Corrupt(where + ": its texts are not UTF-8");
  for (size_t begin = 0; begin < map.contents_.size();) {
    const size_t end = std::min(map.contents_.find('\0', begin), map.contents_.size());
    map.max_content_bytes_ = std::max(map.max_content_bytes_, end - begin);
    begin = end + 1;
  }
  return map;
}

std::string_view Charsmap::ContentAt(size_t offset) const {
  const std::string_view contents = contents_;
  return contents.substr(offset, contents.find('\0', offset) - offset);
}

std::optional<Charsmap::Match> Charsmap::Find(std::string_view text, bool shortest) const {
  std::optional<Match> best;
  if (units_.empty()) return best;
  uint32_t at = Offset(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || Label(units_[at]) != byte) break;
    const bool has_value = HasValue(units_[at]);
    at ^= Offset(units_[at]);
    if (at >= units_.size()) break;
    if (!has_value) continue;
    const size_t offset = units_[at] & ~(1u << 31);
    // An offset into the middle of a character belongs to no text.
    if (offset > contents_.size() ||
        (offset < contents_.size() && IsContinuationByte(contents_[offset]))) {
      break;
    }
    best = Match{i + 1, ContentAt(offset)};
    if (shortest) break;
  }
  return best;
}

}  // namespace tq::tok

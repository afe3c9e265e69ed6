// FastRegex: the regular expressions that tokenizers split by, many times faster than the library.
// It knows alternatives of character classes with greedy counts, a group of short literals
// ("(?i:'s|'ll)?") and one-character look-ahead "(?!\S)"; of such an expression it finds what the
// library finds. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/char_table.h"

namespace tq::tok {

// The parsed expression. A class is an index into `sets`.
struct FastProgram {
  static constexpr uint32_t kUnlimited = ~uint32_t{0};
  struct Item {
    enum class Kind { kClass, kGroup, kNotBefore };
    Kind kind = Kind::kClass;
    uint8_t set = 0;   // kClass, kNotBefore
    uint32_t min = 1;  // counts: of a class, or 0..1 of a group
    uint32_t max = 1;
    std::vector<std::vector<uint8_t>> words;  // kGroup: alternatives, a class for each character
  };
  std::vector<CharSet> sets;
  std::vector<std::vector<Item>> alternatives;

  // Nothing when the expression uses anything else.
  static std::optional<FastProgram> Parse(std::string_view pattern);
};

class FastRegex {
 public:
  // Null when the expression is none of the kind above.
  static std::shared_ptr<const FastRegex> Compile(std::string_view pattern);

  // No match has fewer characters.
  size_t min_match_chars() const { return min_match_chars_; }

  // The end of the match that starts at `begin`, or npos. Matches may be empty.
  // *steps counts down; at zero nothing matches any more.
  size_t MatchAt(std::string_view text, size_t begin, uint64_t* steps) const;

 private:
  struct Alternative {
    std::vector<FastProgram::Item> items;
    uint64_t first_mask;  // classes that its first character may have; 0: it may be empty
  };

  FastRegex(FastProgram program, CharTable table);
  size_t MatchItems(const std::vector<FastProgram::Item>& items, size_t index,
                    std::string_view text, size_t pos, uint64_t* steps) const;
  size_t MatchClass(const std::vector<FastProgram::Item>& items, size_t index,
                    std::string_view text, size_t pos, uint64_t* steps) const;
  size_t MatchGroup(const std::vector<FastProgram::Item>& items, size_t index,
                    std::string_view text, size_t pos, uint64_t* steps) const;

  CharTable table_;
  std::vector<Alternative> alternatives_;
  size_t min_match_chars_ = 0;
};

// The matches of an expression in a text, as RegexScan gives them.
class FastScan {
 public:
  FastScan(const FastRegex& regex, std::string_view text);
  bool Next(size_t* begin, size_t* end);

 private:
  const FastRegex& regex_;
  std::string_view text_;
  size_t from_ = 0;
  size_t last_end_ = std::string_view::npos;
};

}  // namespace tq::tok

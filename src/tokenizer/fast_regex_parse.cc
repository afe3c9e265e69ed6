#include <algorithm>
#include <utility>

#include "tokenizer/fast_regex.h"

namespace tq::tok {
namespace {

using Item = FastProgram::Item;

// Recursive descent over the pattern. Every function gives nothing for what it does not know.
class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  std::optional<FastProgram> Parse() {
    do {
      std::optional<std::vector<Item>> items = Alternative();
      if (!items) return std::nullopt;
      program_.alternatives.push_back(std::move(*items));
    } while (Take("|"));
    if (!AtEnd()) return std::nullopt;
    return std::move(program_);
  }

 private:
  static constexpr uint32_t kMaxCount = 1000;
  static constexpr int kMaxDepth = 8;

  bool AtEnd() const { return pos_ == pattern_.size(); }
  bool Sees(std::string_view text) const { return pattern_.substr(pos_).starts_with(text); }
  bool Take(std::string_view text) {
    if (!Sees(text)) return false;
    pos_ += text.size();
    return true;
  }
  char32_t TakeChar() { return NextChar(pattern_, &pos_); }

  std::optional<std::vector<Item>> Alternative() {
    std::vector<Item> items;
    while (!AtEnd() && !Sees("|")) {
      std::optional<Item> item = ParseItem();
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
    }
    if (items.empty()) return std::nullopt;
    return items;
  }

  std::optional<Item> ParseItem() {
    Item item;
    if (Take("(?!")) {
      const std::optional<uint8_t> set = Atom();
      if (!set || !Take(")") || SeesCount()) return std::nullopt;
      item.kind = Item::Kind::kNotBefore;
      item.set = *set;
      return item;
    }
    if (Sees("(?i:") || Sees("(?:")) {
      const bool any_case = Sees("(?i:");
      Take(any_case ? "(?i:" : "(?:");
      if (!ParseGroup(any_case, &item.words)) return std::nullopt;
      item.kind = Item::Kind::kGroup;
      if (Take("?")) item.min = 0;
      return SeesCount() ? std::nullopt : std::optional(std::move(item));
    }
    const std::optional<uint8_t> set = Atom();
    if (!set) return std::nullopt;
    item.set = *set;
    return ParseCount(&item) ? std::optional(std::move(item)) : std::nullopt;
  }

  bool SeesCount() const { return Sees("?") || Sees("*") || Sees("+") || Sees("{"); }

  // A greedy count, or none. A second one behind it would make it lazy or possessive.
  bool ParseCount(Item* item) {
    if (Take("?")) {
      item->min = 0;
    } else if (Take("*")) {
      item->min = 0;
      item->max = FastProgram::kUnlimited;
    } else if (Take("+")) {
      item->max = FastProgram::kUnlimited;
    } else if (Take("{")) {
      const std::optional<uint32_t> min = Number();
      if (!min) return false;
      item->min = item->max = *min;
      if (Take(",")) {
        item->max = FastProgram::kUnlimited;
        if (!Sees("}")) {
          const std::optional<uint32_t> max = Number();
          if (!max || *max < *min) return false;
          item->max = *max;
        }
      }
      if (!Take("}") || item->max == 0) return false;
    }
    return !SeesCount();
  }

  std::optional<uint32_t> Number() {
    uint32_t value = 0;
    const size_t begin = pos_;
    while (!AtEnd() && pattern_[pos_] >= '0' && pattern_[pos_] <= '9' && value <= kMaxCount) {
      value = 10 * value + static_cast<uint32_t>(pattern_[pos_++] - '0');
    }
    if (pos_ == begin || value > kMaxCount) return std::nullopt;
    return value;
  }

  // Literals up to the closing parenthesis.
  bool ParseGroup(bool any_case, std::vector<std::vector<uint8_t>>* words) {
    do {
      std::vector<uint8_t> word;
      std::string letters;
      while (!AtEnd() && !Sees("|") && !Sees(")")) {
        if (Sees("[") && !any_case) {
          const std::optional<uint8_t> set = Atom();
          if (!set) return false;
          word.push_back(*set);
          continue;
        }
        const char32_t c = TakeChar();
        if (!IsPlain(c)) return false;
        letters.push_back(static_cast<char>(c));
        const std::optional<uint8_t> set = AddSet(any_case ? AnyCase(c) : CharSet::Of(c));
        if (!set) return false;
        word.push_back(*set);
      }
      if (word.empty() || (any_case && HasLigature(letters))) return false;
      words->push_back(std::move(word));
    } while (Take("|"));
    return Take(")");
  }

  // ASCII that stands for itself.
  static bool IsPlain(char32_t c) {
    return c >= ' ' && c < 0x7F &&
           std::string_view("\\^$.[]|()?*+{}").find(static_cast<char>(c)) == std::string_view::npos;
  }

  static CharSet AnyCase(char32_t c) {
    CharSet set = CharSet::Of(c);
    const char32_t lower = c | 0x20;
    if (lower < 'a' || lower > 'z') return set;
    set.Add(CharSet::Of(lower));
    set.Add(CharSet::Of(lower - 0x20));
    if (lower == 's') set.Add(CharSet::Of(0x17F));   // long s
    if (lower == 'k') set.Add(CharSet::Of(0x212A));  // Kelvin sign
    return set;
  }

  // Letters that one character stands for when case does not matter (sharp s, ff, fi ...).
  static bool HasLigature(std::string letters) {
    for (char& c : letters) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    for (const std::string_view pair : {"ss", "ff", "fi", "fl", "st"}) {
      if (letters.find(pair) != std::string::npos) return true;
    }
    return false;
  }

  // A character, an escape or a class outside of brackets.
  std::optional<uint8_t> Atom() {
    if (AtEnd()) return std::nullopt;
    if (Take("[")) {
      const std::optional<CharSet> set = Brackets(0);
      return set ? AddSet(*set) : std::nullopt;
    }
    if (Sees("\\")) {
      const std::optional<CharSet> set = Escape();
      return set ? AddSet(*set) : std::nullopt;
    }
    const char32_t c = TakeChar();
    return c >= 0x80 || IsPlain(c) ? AddSet(CharSet::Of(c)) : std::nullopt;
  }

  std::optional<CharSet> Escape() {
    pos_ += 1;
    if (AtEnd()) return std::nullopt;
    const char32_t c = TakeChar();
    switch (c) {
      case 'p':
      case 'P':
        return PropertyEscape(c == 'P');
      case 's':
      case 'S':
        return Named("space", c == 'S');
      case 'd':
      case 'D':
        return Named("digit", c == 'D');
      case 'r':
        return CharSet::Of('\r');
      case 'n':
        return CharSet::Of('\n');
      case 't':
        return CharSet::Of('\t');
      default:
        break;
    }
    const bool is_symbol = c > ' ' && c < 0x7F && IsPunctuation(c);
    return is_symbol ? std::optional(CharSet::Of(c)) : std::nullopt;
  }

  static std::optional<CharSet> Named(std::string_view name, bool negated) {
    std::optional<CharSet> set = CharSet::Property(name);
    if (set && negated) return set->Complement();
    return set;
  }

  std::optional<CharSet> PropertyEscape(bool negated) {
    if (!Take("{")) return std::nullopt;
    if (Take("^")) negated = !negated;
    const size_t end = pattern_.find('}', pos_);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = pattern_.substr(pos_, end - pos_);
    pos_ = end + 1;
    return Named(name, negated);
  }

  // Behind "[": members up to "]", "&&" between operands that intersect.
  std::optional<CharSet> Brackets(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    const bool negated = Take("^");
    std::optional<CharSet> all;
    CharSet operand;
    bool is_empty = true;
    while (true) {
      if (AtEnd()) return std::nullopt;
      const bool ends = Sees("]");
      if (ends || Sees("&&")) {
        if (is_empty) return std::nullopt;
        all = all ? all->Intersection(operand) : operand;
        operand = CharSet();
        is_empty = true;
        pos_ += ends ? 1 : 2;
        if (ends) return negated ? all->Complement() : *all;
        continue;
      }
      const std::optional<CharSet> member = Member(depth);
      if (!member) return std::nullopt;
      operand.Add(*member);
      is_empty = false;
    }
  }

  // A nested class, an escape, a character or a range.
  std::optional<CharSet> Member(int depth) {
    if (Sees("[:")) return std::nullopt;
    if (Take("[")) return Brackets(depth + 1);
    std::optional<CharSet> first = Sees("\\") ? Escape() : CharSet::Of(TakeChar());
    if (!first || !Sees("-")) return first;
    const bool is_char =
        first->ranges().size() == 1 && first->ranges()[0].first == first->ranges()[0].last;
    // "-" next to a class or at an end: libraries differ.
    if (!is_char || !Take("-") || AtEnd() || Sees("]") || Sees("[") || Sees("&&")) {
      return std::nullopt;
    }
    const std::optional<CharSet> last = Sees("\\") ? Escape() : CharSet::Of(TakeChar());
    if (!last || last->ranges().size() != 1) return std::nullopt;
    const CharSet::Range from = first->ranges()[0];
    const CharSet::Range to = last->ranges()[0];
    if (to.first != to.last || to.first < from.first) return std::nullopt;
    return CharSet::Of(from.first, to.first);
  }

  std::optional<uint8_t> AddSet(const CharSet& set) {
    const auto found = std::find(program_.sets.begin(), program_.sets.end(), set);
    const auto index = static_cast<size_t>(found - program_.sets.begin());
    if (index == CharTable::kMaxSets) return std::nullopt;
    if (found == program_.sets.end()) program_.sets.push_back(set);
    return static_cast<uint8_t>(index);
  }

  std::string_view pattern_;
  size_t pos_ = 0;
  FastProgram program_;
};

}  // namespace

std::optional<FastProgram> FastProgram::Parse(std::string_view pattern) {
  if (!IsUtf8(pattern)) return std::nullopt;
  return Parser(pattern).Parse();
}

}  // namespace tq::tok

#include "tokenizer/fast_regex.h"

#include <algorithm>
#include <utility>

namespace tq::tok {

using Item = FastProgram::Item;

namespace {

constexpr size_t kNoMatch = std::string_view::npos;

uint64_t Bit(uint8_t set) { return uint64_t{1} << set; }

// Classes that the first character of a match may have; 0 when a match may have no character.
uint64_t FirstMask(const std::vector<Item>& items) {
  uint64_t mask = 0;
  for (const Item& item : items) {
    if (item.kind == Item::Kind::kNotBefore) continue;
    if (item.kind == Item::Kind::kClass) mask |= Bit(item.set);
    for (const std::vector<uint8_t>& word : item.words) mask |= Bit(word.front());
    if (item.min > 0) return mask;
  }
  return 0;
}

size_t MinChars(const std::vector<Item>& items) {
  size_t sum = 0;
  for (const Item& item : items) {
    size_t chars = item.kind == Item::Kind::kNotBefore ? 0 : 1;
    for (const std::vector<uint8_t>& word : item.words) {
      chars = &word == &item.words.front() ? word.size() : std::min(chars, word.size());
    }
    sum += chars * item.min;
  }
  return sum;
}

}  // namespace

FastRegex::FastRegex(FastProgram program, CharTable table) : table_(std::move(table)) {
  min_match_chars_ = MinChars(program.alternatives.front());
  for (std::vector<Item>& items : program.alternatives) {
    min_match_chars_ = std::min(min_match_chars_, MinChars(items));
    const uint64_t mask = FirstMask(items);
    alternatives_.push_back({std::move(items), mask});
  }
}

std::shared_ptr<const FastRegex> FastRegex::Compile(std::string_view pattern) {
  std::optional<FastProgram> program = FastProgram::Parse(pattern);
  if (!program) return nullptr;
  std::optional<CharTable> table = CharTable::Build(program->sets);
  if (!table) return nullptr;
  return std::shared_ptr<const FastRegex>(new FastRegex(std::move(*program), std::move(*table)));
}

size_t FastRegex::MatchAt(std::string_view text, size_t begin, uint64_t* steps) const {
  size_t pos = begin;
  const uint64_t first = begin < text.size() ? table_.Next(text, &pos) : 0;
  for (const Alternative& alternative : alternatives_) {
    if (alternative.first_mask != 0 && (alternative.first_mask & first) == 0) continue;
    const size_t end = MatchItems(alternative.items, 0, text, begin, steps);
    if (end != kNoMatch) return end;
  }
  return kNoMatch;
}

size_t FastRegex::MatchItems(const std::vector<Item>& items, size_t index, std::string_view text,
                             size_t pos, uint64_t* steps) const {
  if (*steps == 0) return kNoMatch;
  --*steps;
  if (index == items.size()) return pos;
  const Item& item = items[index];
  switch (item.kind) {
    case Item::Kind::kClass:
      return MatchClass(items, index, text, pos, steps);
    case Item::Kind::kGroup:
      return MatchGroup(items, index, text, pos, steps);
    case Item::Kind::kNotBefore: {
      size_t next = pos;
      if (pos < text.size() && (table_.Next(text, &next) & Bit(item.set)) != 0) return kNoMatch;
      return MatchItems(items, index + 1, text, pos, steps);
    }
  }
  return kNoMatch;
}

// As many characters as there are, then fewer while the rest does not match.
size_t FastRegex::MatchClass(const std::vector<Item>& items, size_t index, std::string_view text,
                             size_t pos, uint64_t* steps) const {
  const Item& item = items[index];
  const uint64_t bit = Bit(item.set);
  uint32_t count = 0;
  size_t end = pos;
  while (count < item.max && end < text.size()) {
    size_t next = end;
    if ((table_.Next(text, &next) & bit) == 0) break;
    end = next;
    ++count;
  }
  if (count < item.min) return kNoMatch;
  if (index + 1 == items.size()) return end;
  while (true) {
    const size_t match = MatchItems(items, index + 1, text, end, steps);
    if (match != kNoMatch) return match;
    if (count == item.min || *steps == 0) return kNoMatch;
    end = PreviousCharStart(text, end);
    --count;
  }
}

size_t FastRegex::MatchGroup(const std::vector<Item>& items, size_t index, std::string_view text,
                             size_t pos, uint64_t* steps) const {
  const Item& item = items[index];
  for (const std::vector<uint8_t>& word : item.words) {
    size_t end = pos;
    const bool matches = std::all_of(word.begin(), word.end(), [&](uint8_t set) {
      return end < text.size() && (table_.Next(text, &end) & Bit(set)) != 0;
    });
    if (!matches) continue;
    const size_t match = MatchItems(items, index + 1, text, end, steps);
    if (match != kNoMatch) return match;
  }
  return item.min == 0 ? MatchItems(items, index + 1, text, pos, steps) : kNoMatch;
}

FastScan::FastScan(const FastRegex& regex, std::string_view text) : regex_(regex), text_(text) {}

bool FastScan::Next(size_t* begin, size_t* end) {
  constexpr uint64_t kMinSteps = 40'000'000;
  uint64_t steps = std::max<uint64_t>(kMinSteps, 16 * text_.size());
  while (from_ <= text_.size()) {
    const size_t match = regex_.MatchAt(text_, from_, &steps);
    if (steps == 0) break;
    const bool repeats = match == from_ && match == last_end_;
    if (match == kNoMatch || repeats) {
      if (from_ == text_.size()) break;
      NextChar(text_, &from_);
      continue;
    }
    *begin = from_;
    *end = match;
    from_ = match;
    last_end_ = match;
    return true;
  }
  from_ = text_.size() + 1;
  return false;
}

}  // namespace tq::tok

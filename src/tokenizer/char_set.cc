#include "tokenizer/char_set.h"

#include <algorithm>

#include "tokenizer/regex.h"

namespace tq::tok {

std::optional<CharSet> CharSet::Property(std::string_view name) {
  CharSet set;
  if (!AppendPropertyRanges(name, &set.ranges_)) return std::nullopt;
  return set;
}

void CharSet::Add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const Range& range : ranges_) {
    if (kept > 0 && range.first <= ranges_[kept - 1].last + 1) {
      ranges_[kept - 1].last = std::max(ranges_[kept - 1].last, range.last);
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
}

CharSet CharSet::Complement() const {
  CharSet out;
  uint32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxChar) out.ranges_.push_back({next, kMaxChar});
  return out;
}

CharSet CharSet::Intersection(const CharSet& other) const {
  CharSet outside = Complement();
  outside.Add(other.Complement());
  return outside.Complement();
}

}  // namespace tq::tok

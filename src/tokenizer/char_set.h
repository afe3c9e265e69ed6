// CharSet: a set of code points as sorted ranges that do not touch. What the classes of a regular
// expression are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tq::tok {

class CharSet {
 public:
  struct Range {
    uint32_t first;
    uint32_t last;
    bool operator==(const Range&) const = default;
  };
  static constexpr uint32_t kMaxChar = 0x10FFFF;

  CharSet() = default;
  static CharSet Of(uint32_t first, uint32_t last) {
    CharSet set;
    set.ranges_.push_back({first, last});
    return set;
  }
  static CharSet Of(uint32_t c) { return Of(c, c); }
  // \p{name} as the regex library knows it ("L", "Lu", "Han", "space"); nothing: no such name.
  static std::optional<CharSet> Property(std::string_view name);

  void Add(const CharSet& other);
  CharSet Complement() const;
  CharSet Intersection(const CharSet& other) const;
  const std::vector<Range>& ranges() const { return ranges_; }
  bool operator==(const CharSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace tq::tok

// MarkMatcher: finds the first of some marks in a text that comes byte by byte, and holds back only
// what may still become one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tq {

class MarkMatcher {
 public:
  static constexpr int kNone = -1;

  MarkMatcher() = default;
  // None of them is part of another; empty ones never match.
  explicit MarkMatcher(std::vector<std::string_view> marks) : marks_(std::move(marks)) {}

  // The index of the mark that ends with this byte, or kNone. Appends to `released` what belongs to
  // no mark.
  int Push(char c, std::string& released) {
    held_ += c;
    while (!held_.empty()) {
      bool may_grow = false;
      for (size_t i = 0; i < marks_.size(); ++i) {
        if (!marks_[i].starts_with(held_)) continue;
        if (marks_[i].size() == held_.size()) {
          held_.clear();
          return static_cast<int>(i);
        }
        may_grow = true;
      }
      if (may_grow) return kNone;
      released += held_[0];
      held_.erase(0, 1);
    }
    return kNone;
  }

  bool empty() const { return held_.empty(); }
  std::string Take() { return std::exchange(held_, {}); }
  // Whether a mark may begin with it: all other bytes are released at once.
  bool Begins(char c) const {
    for (const std::string_view mark : marks_) {
      if (!mark.empty() && mark[0] == c) return true;
    }
    return false;
  }

 private:
  std::vector<std::string_view> marks_;
  std::string held_;
};

}  // namespace tq

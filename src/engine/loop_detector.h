// LoopDetector: notices an answer that says the same ids over and over. Thread: engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tq {

class LoopDetector {
 public:
  static constexpr size_t kLongestPeriod = 64;

  // repeats: how many times in a row a block of 1 to kLongestPeriod ids has to come; 0: never.
  explicit LoopDetector(int64_t repeats) : repeats_(repeats) {}

  // answer: its ids so far; call once for each that comes. True: it loops. Cost: 64 comparisons.
  bool Push(std::span<const int32_t> answer) {
    if (repeats_ < 2) return false;
    const size_t last = answer.size() - 1;
    bool loops = false;
    for (size_t period = 1; period <= kLongestPeriod && period <= last; ++period) {
      int64_t& run = runs_[period - 1];
      run = answer[last] == answer[last - period] ? run + 1 : 0;
      loops = loops || run >= (repeats_ - 1) * static_cast<int64_t>(period);
    }
    return loops;
  }

 private:
  int64_t repeats_;
  std::array<int64_t, kLongestPeriod> runs_ = {};  // ids in a row equal to the one a period before
};

}  // namespace tq

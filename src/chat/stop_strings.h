// StopStrings: ends a text where a stop string first becomes complete, and holds back what may
// still become one. The result does not depend on how the text was cut into pieces. Thread: one
// caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tq {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  // The text that is safe to show now. After a stop nothing more comes.
  std::string Push(std::string_view text);
  // The end of the text: what was held back, unless a stop came.
  std::string Finish();
  bool stopped() const { return stopped_; }
  const std::string& stop() const { return stop_; }  // which one came

 private:
  // Length of the longest stop string that ends at held_[0, end); 0: none.
  size_t StopAt(size_t end) const;
  // Length of the longest suffix of held_ that begins a stop string.
  size_t PartialLength() const;

  std::vector<std::string> stops_;
  size_t longest_ = 0;
  std::string held_;
  std::string stop_;
  bool stopped_ = false;
};

}  // namespace tq

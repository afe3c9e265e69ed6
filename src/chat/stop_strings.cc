#include "chat/stop_strings.h"

#include <algorithm>
#include <utility>

namespace tq {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
  for (const std::string& stop : stops_) longest_ = std::max(longest_, stop.size());
}

size_t StopStrings::StopAt(size_t end) const {
  const std::string_view text = std::string_view(held_).substr(0, end);
  size_t length = 0;
  for (const std::string& stop : stops_) {
    if (text.ends_with(stop)) length = std::max(length, stop.size());
  }
  return length;
}

size_t StopStrings::PartialLength() const {
  for (size_t n = std::min(held_.size(), longest_); n > 0; --n) {
    const std::string_view tail = std::string_view(held_).substr(held_.size() - n);
    for (const std::string& stop : stops_) {
      if (std::string_view(stop).starts_with(tail)) return n;
    }
  }
  return 0;
}

std::string StopStrings::Push(std::string_view text) {
  if (stopped_) return "";
  if (stops_.empty()) return std::string(text);
  const size_t old_size = held_.size();
  held_ += text;
  for (size_t end = old_size + 1; end <= held_.size(); ++end) {
    const size_t length = StopAt(end);
    if (length == 0) continue;
    stopped_ = true;
    stop_ = held_.substr(end - length, length);
    std::string safe = held_.substr(0, end - length);
    held_.clear();
    return safe;
  }
  const size_t safe_size = held_.size() - PartialLength();
  std::string safe = held_.substr(0, safe_size);
  held_.erase(0, safe_size);
  return safe;
}

std::string StopStrings::Finish() { return std::exchange(held_, ""); }

}  // namespace tq

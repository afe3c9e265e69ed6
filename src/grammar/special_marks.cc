#include "grammar/special_marks.h"

#include <algorithm>

namespace tq {
namespace {

// Shift out to unit separator, without escape.
constexpr std::string_view kStandIns =
    "\x0E\x0F\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1A\x1C\x1D\x1E\x1F";

}  // namespace

SpecialMarks::SpecialMarks(const Tokenizer& tokenizer, std::span<const std::string_view> marks) {
  for (const std::string_view mark : marks) {
    const int32_t id = mark.empty() ? -1 : tokenizer.TokenId(mark);
    if (id < 0 || !tokenizer.IsSpecial(id) || marks_.size() == kStandIns.size()) continue;
    if (!TextOf(id).empty()) continue;
    marks_.push_back({std::string(mark), id, kStandIns[marks_.size()]});
  }
  std::stable_sort(marks_.begin(), marks_.end(),
                   [](const Mark& a, const Mark& b) { return a.text.size() > b.text.size(); });
}

std::string SpecialMarks::TextOf(int32_t id) const {
  for (const Mark& mark : marks_) {
    if (mark.id == id) return std::string(1, mark.stand_in);
  }
  return "";
}

std::string SpecialMarks::WithoutStandIns(std::string text) const {
  const bool has_one = std::any_of(marks_.begin(), marks_.end(), [&](const Mark& mark) {
    return text.find(mark.stand_in) != std::string::npos;
  });
  return has_one ? "" : text;
}

std::string SpecialMarks::Replace(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const auto mark = std::find_if(marks_.begin(), marks_.end(),
                                   [&](const Mark& m) { return text.starts_with(m.text); });
    out += mark == marks_.end() ? text.front() : mark->stand_in;
    text.remove_prefix(mark == marks_.end() ? 1 : mark->text.size());
  }
  return out;
}

std::vector<std::string> SpecialMarks::StandIns() const {
  std::vector<std::string> out;
  for (const Mark& mark : marks_) out.emplace_back(1, mark.stand_in);
  return out;
}

}  // namespace tq

// SpecialMarks: lets a grammar, which is about text, have special tokens in chosen places: each one
// is stood in for by a control character that no JSON has, and that no other token may have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tq {

class SpecialMarks {
 public:
  // Of the marks, those that are special tokens; at most as many as there are stand-ins.
  SpecialMarks(const Tokenizer& tokenizer, std::span<const std::string_view> marks);

  // The stand-in of a special token; "" when it has none.
  std::string TextOf(int32_t id) const;
  // "" for the text of another token that has a stand-in in it.
  std::string WithoutStandIns(std::string text) const;
  // The text with stand-ins in place of the marks.
  std::string Replace(std::string_view text) const;
  // Each alone.
  std::vector<std::string> StandIns() const;

 private:
  struct Mark {
    std::string text;
    int32_t id;
    char stand_in;
  };
  std::vector<Mark> marks_;  // the longest first
};

}  // namespace tq

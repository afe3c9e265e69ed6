// What people and tools write stays text: "<|im_end|>" in a message must not end the turn. The
// template's own special tokens and such text look the same in a rendered prompt, so the places of
// the latter are found here, with a marker behind each. Private to prompt.cc.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/text_span.h"

namespace tq {

// The texts that a tokenizer reads as special tokens. Immutable; any thread.
class SpecialTexts {
 public:
  SpecialTexts() = default;
  explicit SpecialTexts(std::vector<std::string> texts);  // empty ones are left out

  static constexpr size_t kNone = static_cast<size_t>(-1);
  // The longest text that begins at text[at], or kNone.
  size_t LongestAt(std::string_view text, size_t at) const;
  const std::string& text(size_t i) const { return texts_[i]; }
  size_t size() const { return texts_.size(); }

 private:
  std::vector<std::string> texts_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // longest first
};

using RenderJson =
    std::function<Result<std::string>(const OrderedJson& messages, const OrderedJson& tools)>;

// Where special texts of messages and tools stand in `rendered`, their rendering; sorted. Markers
// of thoughts in an assistant's text do not count: clients send reasoning that way. Renders once
// more when there is such text, and a few times when the template's decisions depend on it: such a
// message keeps its special tokens and has a note.
std::vector<TextSpan> FindPlainText(const SpecialTexts& special, const OrderedJson& messages,
                                    const OrderedJson& tools, const std::string& rendered,
                                    const RenderJson& render, std::vector<std::string>& notes);

}  // namespace tq

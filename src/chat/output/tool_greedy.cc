#include "chat/output/tool_greedy.h"

#include <algorithm>
#include <utility>

#include "chat/output/json_scanner.h"
#include "chat/output/tool_format.h"

namespace tq {

ToolSyntaxTracker::ToolSyntaxTracker(Marks marks) : marks_(std::move(marks)) {
  const auto count = [this](const std::string& mark) {
    longest_ = std::max(longest_, mark.size());
  };
  for (const std::string& mark : marks_.open) count(mark);
  for (const std::string& mark : marks_.close) count(mark);
  for (const std::string* mark : {&marks_.param_open, &marks_.key_close, &marks_.attributes_close,
                                  &marks_.value_open, &marks_.value_close, &marks_.quote}) {
    count(*mark);
  }
}

ToolSyntaxTracker::ToolSyntaxTracker(ToolSyntax syntax) : ToolSyntaxTracker(MarksOf(syntax)) {}

ToolSyntaxTracker::ToolSyntaxTracker(std::string_view open_tag, std::string_view close_tag)
    : ToolSyntaxTracker([&] {
        Marks marks;
        marks.open = {std::string(open_tag)};
        marks.close = {std::string(close_tag)};
        return marks;
      }()) {}

ToolSyntaxTracker::Marks ToolSyntaxTracker::MarksOf(ToolSyntax syntax) {
  const ToolFormat& format = FormatOf(syntax);
  Marks marks;
  for (const std::string_view open : format.open) marks.open.emplace_back(open);
  // Its calls are messages; the name is in the header.
  if (syntax == ToolSyntax::kHarmony) marks.open = {" to=functions."};
  for (const std::string_view close :
       {format.close, format.close_too, format.open_is_call ? format.call_close : ""}) {
    if (!close.empty()) marks.close.emplace_back(close);
  }
  marks.param_open = format.param_open;
  marks.key_close = format.key_close;
  marks.attributes_close = format.attributes_close;
  marks.value_open = format.value_open;
  marks.value_close = format.value_close;
  marks.quote = format.quote;
  marks.bare = format.bare;
  marks.has_name = format.shape == ToolFormat::Shape::kNamed;
  marks.is_python = format.shape == ToolFormat::Shape::kPython;
  return marks;
}

void ToolSyntaxTracker::Reset() { *this = ToolSyntaxTracker(std::move(marks_)); }

void ToolSyntaxTracker::Feed(std::string_view text) {
  for (const char c : text) Push(c);
}

bool ToolSyntaxTracker::EndsWithAny(const std::vector<std::string>& marks) const {
  return std::any_of(marks.begin(), marks.end(),
                     [this](const std::string& mark) { return EndsWith(mark); });
}

void ToolSyntaxTracker::Push(char c) {
  tail_ += c;
  if (tail_.size() > 2 * longest_) tail_.erase(0, tail_.size() - longest_);
  if (!in_tool_) {
    PushOutside(c);
  } else if (in_value_ || string_ != 0) {
    PushValue(c);
  } else if (EndsWithAny(marks_.close)) {
    Close();
  } else if (BeginsTaggedValue() || EndsWith(marks_.quote)) {
    in_value_ = true;
  } else {
    PushJson(c);
  }
}

void ToolSyntaxTracker::PushOutside(char c) {
  if (EndsWithAny(marks_.open)) return Open();
  if (marks_.bare == c && c != 0 && may_be_bare_) {
    Open();
    return PushJson(c);
  }
  if (!IsJsonSpace(c) && c != ';' && c != ',') may_be_bare_ = false;
}

void ToolSyntaxTracker::Open() {
  in_tool_ = true;
  in_value_ = closes_value_ = escaped_ = expects_key_ = has_object_ = false;
  string_ = 0;
  tag_ = Tag::kNone;
  nested_.clear();
  // A mark that is the beginning of a call already.
  if (EndsWith(marks_.param_open)) tag_ = Tag::kKey;
}

void ToolSyntaxTracker::Close() {
  in_tool_ = false;
  may_be_bare_ = true;
}

void ToolSyntaxTracker::PushValue(char c) {
  if (string_ != 0) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == string_) {
      string_ = 0;
      in_value_ = false;
    }
    return;
  }
  const std::string& close = marks_.quote.empty() ? marks_.value_close : marks_.quote;
  if (EndsWith(close)) {
    in_value_ = closes_value_ = false;
    return;
  }
  closes_value_ = false;
  for (size_t n = 2; n < close.size() && !closes_value_; ++n) {
    closes_value_ = tail_.ends_with(std::string_view(close).substr(0, n));
  }
}

bool ToolSyntaxTracker::BeginsTaggedValue() {
  if (marks_.value_close.empty()) return false;
  if (!marks_.value_open.empty()) return EndsWith(marks_.value_open);
  switch (tag_) {
    case Tag::kNone:
      if (EndsWith(marks_.param_open)) tag_ = Tag::kKey;
      return false;
    case Tag::kKey:
      if (!EndsWith(marks_.key_close)) return false;
      tag_ = marks_.attributes_close.empty() ? Tag::kNone : Tag::kAttributes;
      return tag_ == Tag::kNone;
    case Tag::kAttributes:
      if (!EndsWith(marks_.attributes_close)) return false;
      tag_ = Tag::kNone;
      return true;
  }
  return false;
}

void ToolSyntaxTracker::PushJson(char c) {
  if (IsJsonSpace(c)) return;
  const bool expected_key = std::exchange(expects_key_, false);
  // Quotes in tags are syntax, and where texts have a mark of their own there are no others.
  const bool has_strings = marks_.quote.empty() && (marks_.value_close.empty() || !nested_.empty());
  if (has_strings && (c == '"' || (c == '\'' && marks_.is_python))) {
    string_ = c;
    in_value_ = !expected_key;
  } else if (c == '{' || c == '[') {
    nested_.push_back(c);
    expects_key_ = c == '{';
    has_object_ = has_object_ || c == '{';
  } else if (c == '}' || c == ']') {
    if (!nested_.empty()) nested_.pop_back();
    const bool is_json = has_object_ || !marks_.has_name;
    if (marks_.close.empty() && nested_.empty() && is_json) Close();
  } else if (c == ',') {
    expects_key_ = !nested_.empty() && nested_.back() == '{';
  }
}

}  // namespace tq

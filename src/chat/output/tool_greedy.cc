#include "chat/output/tool_greedy.h"

#include <algorithm>

#include "chat/output/json_scanner.h"

namespace tq {

ToolSyntaxTracker::ToolSyntaxTracker(std::string_view open_tag, std::string_view close_tag)
    : open_tag_(open_tag), close_tag_(close_tag) {}

void ToolSyntaxTracker::Reset() { *this = ToolSyntaxTracker(open_tag_, close_tag_); }

void ToolSyntaxTracker::Feed(std::string_view text) {
  for (const char c : text) Push(c);
}

void ToolSyntaxTracker::Push(char c) {
  const size_t kept = std::max(open_tag_.size(), close_tag_.size());
  tail_ += c;
  if (tail_.size() > 2 * kept) tail_.erase(0, tail_.size() - kept);
  if (!in_tool_) {
    if (open_tag_.empty() || !tail_.ends_with(open_tag_)) return;
    in_tool_ = true;
    in_string_ = in_value_ = escaped_ = expects_key_ = false;
    nested_.clear();
    return;
  }
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = in_value_ = false;
    }
    return;
  }
  if (!close_tag_.empty() && tail_.ends_with(close_tag_)) {
    in_tool_ = false;
    return;
  }
  if (IsJsonSpace(c)) return;
  const bool expected_key = expects_key_;
  expects_key_ = false;
  if (c == '"') {
    in_string_ = true;
    in_value_ = !expected_key;
  } else if (c == '{' || c == '[') {
    nested_.push_back(c);
    expects_key_ = c == '{';
  } else if (c == '}' || c == ']') {
    if (!nested_.empty()) nested_.pop_back();
  } else if (c == ',') {
    expects_key_ = !nested_.empty() && nested_.back() == '{';
  }
}

}  // namespace tq

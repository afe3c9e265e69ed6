// ToolSyntaxTracker: for --tool-syntax-greedy. Says after each piece of generated text whether the
// next token is part of the syntax of a call, and so is to be the most probable one. Thread: one
// caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tq {

// Between the tags all is syntax but the strings that are values: a string in an object is a key
// behind '{' or ',', everywhere else it is a value. The closing tag counts only outside of strings.
class ToolSyntaxTracker {
 public:
  ToolSyntaxTracker(std::string_view open_tag, std::string_view close_tag);

  void Feed(std::string_view text);
  bool next_is_syntax() const { return in_tool_ && !in_value_; }
  // Back to the beginning: for a text that is read again after tokens were taken back.
  void Reset();

 private:
  void Push(char c);

  std::string open_tag_;
  std::string close_tag_;
  std::string tail_;          // the last bytes, as many as the longer tag has
  std::vector<char> nested_;  // open '{' and '['
  bool in_tool_ = false;
  bool in_string_ = false;
  bool in_value_ = false;
  bool escaped_ = false;
  bool expects_key_ = false;
};

}  // namespace tq

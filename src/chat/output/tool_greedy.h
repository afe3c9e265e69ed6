// ToolSyntaxTracker: for --tool-syntax-greedy. Says after each piece of generated text whether the
// next token is part of the syntax of a call, and so is to be the most probable one. Thread: one
// caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/output/output_syntax.h"

namespace tq {

// Between the marks all is syntax but the arguments' texts. In JSON and Python: strings; one in an
// object is a key behind '{' or ',', everywhere else it is a value. Where arguments stand in tags:
// what is between them, up to the second byte of the closing one. The mark that ends the calls
// counts only outside of texts.
class ToolSyntaxTracker {
 public:
  // Of a syntax that the parser (output_parser.h) knows; kNone: nothing is a call.
  explicit ToolSyntaxTracker(ToolSyntax syntax);
  // JSON between two tags.
  ToolSyntaxTracker(std::string_view open_tag, std::string_view close_tag);

  void Feed(std::string_view text);
  bool next_is_syntax() const { return in_tool_ && (!in_value_ || closes_value_); }
  // Back to the beginning: for a text that is read again after tokens were taken back.
  void Reset();

 private:
  // Empty ones are not written.
  struct Marks {
    std::vector<std::string> open;
    std::vector<std::string> close;  // none: the end of the JSON
    std::string param_open;
    std::string key_close;
    std::string attributes_close;
    std::string value_open;
    std::string value_close;  // arguments are in tags
    std::string quote;        // of every text, in place of '"'
    char bare = 0;            // calls may begin with it, without a mark
    bool has_name = false;    // in front of the JSON, perhaps with '[' in it
    bool is_python = false;   // '\'' quotes, too
  };
  // Where a text in tags comes next.
  enum class Tag : uint8_t { kNone, kKey, kAttributes };

  explicit ToolSyntaxTracker(Marks marks);
  static Marks MarksOf(ToolSyntax syntax);
  bool EndsWith(const std::string& mark) const { return !mark.empty() && tail_.ends_with(mark); }
  bool EndsWithAny(const std::vector<std::string>& marks) const;
  void Push(char c);
  void PushOutside(char c);
  void PushValue(char c);
  // Whether a value in tags begins behind this byte.
  bool BeginsTaggedValue();
  void PushJson(char c);
  void Open();
  void Close();

  Marks marks_;
  size_t longest_ = 1;
  std::string tail_;          // the last bytes, at least as many as the longest mark has
  std::vector<char> nested_;  // open '{' and '['
  Tag tag_ = Tag::kNone;
  char string_ = 0;  // the quote of an open string
  bool in_tool_ = false;
  bool in_value_ = false;
  bool closes_value_ = false;
  bool escaped_ = false;
  bool expects_key_ = false;
  bool has_object_ = false;  // of these calls
  bool may_be_bare_ = true;  // nothing but space and separators since the last call
};

}  // namespace tq

// Where XGrammar's messages go: it warns of what it will not enforce, and that must not be lost.
#pragma once

#include <string>

namespace tq {

// While alive, collects the warnings of this thread. Others' are dropped.
class XGrammarWarnings {
 public:
  XGrammarWarnings();
  ~XGrammarWarnings();
  XGrammarWarnings(const XGrammarWarnings&) = delete;
  XGrammarWarnings& operator=(const XGrammarWarnings&) = delete;
  const std::string& text() const { return text_; }  // "" or the first one
  void Add(const std::string& message);

 private:
  XGrammarWarnings* outer_;
  std::string text_;
};

}  // namespace tq

// LineEditor: lines of a person at a terminal (with history and editing), or of a script.
// Thread: one caller.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tq {

class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Stdin and stdout are a terminal.
  bool interactive() const { return terminal_ != nullptr; }
  // Without the newline; nullopt at the end of the input (Ctrl-D). Ctrl-C empties the line.
  std::optional<std::string> ReadLine();

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;  // null: a script
};

}  // namespace tq

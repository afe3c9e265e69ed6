#include "apps/line_editor.h"

#include <clocale>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <histedit.h>
#include <unistd.h>

namespace tq {
namespace {

const char* Prompt(EditLine*) { return ">>> "; }

unsigned char EmptyLine(EditLine* editor, int) {
  el_cursor(editor, 1 << 20);
  const LineInfo* line = el_line(editor);
  el_deletestr(editor, static_cast<int>(line->lastchar - line->buffer));
  std::fputs("^C\n", stdout);
  return CC_REDISPLAY;
}

}  // namespace

struct LineEditor::Terminal {
  Terminal() {
    // The editor counts columns of whole characters; numbers keep the C locale.
    const char* locale = std::setlocale(LC_CTYPE, "");
    if (locale == nullptr || std::strstr(locale, "UTF-8") == nullptr) {
      std::setlocale(LC_CTYPE, "C.UTF-8");
    }
    editor = el_init("turboquant", stdin, stdout, stderr);
    past = history_init();
    HistEvent event;
    history(past, &event, H_SETSIZE, 1000);
    el_set(editor, EL_PROMPT, Prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, history, past);
    // Ctrl-C is a key of the editor, not a signal, while a line is being typed.
    el_set(editor, EL_ADDFN, "tq-empty-line", "Empty the line", EmptyLine);
    el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
    el_set(editor, EL_BIND, "^C", "tq-empty-line", nullptr);
  }
  ~Terminal() {
    history_end(past);
    el_end(editor);
  }
  EditLine* editor;
  History* past;
};

LineEditor::LineEditor() {
  if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) {
    terminal_ = std::make_unique<Terminal>();
  }
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::ReadLine() {
  std::string line;
  if (terminal_ == nullptr) {
    if (!std::getline(std::cin, line)) return std::nullopt;
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  int length = 0;
  const char* text = el_gets(terminal_->editor, &length);
  if (text == nullptr || length <= 0) {
    std::fputs("\n", stdout);
    return std::nullopt;
  }
  line.assign(text, static_cast<size_t>(length));
  if (line.ends_with('\n')) line.pop_back();
  if (!line.empty()) {
    HistEvent event;
    history(terminal_->past, &event, H_ENTER, line.c_str());
  }
  return line;
}

}  // namespace tq

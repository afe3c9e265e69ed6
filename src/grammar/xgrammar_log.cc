#include "grammar/xgrammar_log.h"

#include <stdexcept>

namespace tq {
namespace {

thread_local XGrammarWarnings* current = nullptr;

}  // namespace

XGrammarWarnings::XGrammarWarnings() : outer_(current) { current = this; }
XGrammarWarnings::~XGrammarWarnings() { current = outer_; }
void XGrammarWarnings::Add(const std::string& message) {
  if (text_.empty()) {
    text_ = message;
  }
}

}  // namespace tq

// The hooks that XGrammar calls when it is built with XGRAMMAR_LOG_CUSTOMIZE.
namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& file, int lineno, const std::string& message);
void LogMessageImpl(const std::string& file, int lineno, int level, const std::string& message);

// It expects an exception; grammar_compiler.cc catches it.
[[noreturn]] void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string&, int, int level, const std::string& message) {
  constexpr int kWarning = 2;
  if (level >= kWarning && tq::current != nullptr) {
    tq::current->Add(message);
  }
}

}  // namespace xgrammar

// In a build without XGrammar.
#include "grammar/grammar_compiler.h"

namespace tq {

bool GrammarCompiler::Available() { return false; }

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(
    const Tokenizer&, int64_t, std::span<const std::string_view>) {
  return Unsupported(
      "structured output needs XGrammar, which this program was built without (TQ_XGRAMMAR, "
      "docs/structured-output.md)");
}

}  // namespace tq

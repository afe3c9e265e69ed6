#include "server/served_model.h"

#include <algorithm>
#include <utility>

namespace tq::server {

ServedModel::ServedModel(ModelCard card, size_t index, size_t max_turns)
    : card_(std::move(card)), index_(index), turns_(max_turns) {}

bool ServedModel::HasName(std::string_view name) const {
  return name == card_.name ||
         std::find(card_.aliases.begin(), card_.aliases.end(), name) != card_.aliases.end();
}

Result<GrammarCompiler*> ServedModel::grammars() {
  const std::lock_guard lock(grammars_mutex_);
  if (grammars_ == nullptr) {
    TQ_ASSIGN_OR_RETURN(grammars_, GrammarCompiler::Create(*text().tokenizer, vocab_size()));
  }
  return grammars_.get();
}

Result<GrammarCompiler*> ServedModel::call_grammars(const OutputSyntax& syntax) {
  const std::lock_guard lock(grammars_mutex_);
  if (call_grammars_ == nullptr) {
    TQ_ASSIGN_OR_RETURN(call_grammars_, GrammarCompiler::Create(*text().tokenizer, vocab_size(),
                                                                SyntaxMarks(syntax)));
  }
  return call_grammars_.get();
}

}  // namespace tq::server

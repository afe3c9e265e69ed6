// ServedModel: one of the models that the server answers with, without its weights: names,
// tokenizer, template and limits, and what is remembered of its answers. Weights come and go
// (model_pool.h), this stays, so that a request can be read, checked and counted before a load.
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/text_assets.h"
#include "base/status.h"
#include "chat/output/output_syntax.h"
#include "engine/engine.h"
#include "grammar/grammar_compiler.h"
#include "server/model_pool.h"
#include "server/turn_store.h"

namespace tq::server {

// What is known of a model from its files' headers.
struct ModelCard {
  std::string name;                       // as clients see it
  std::vector<std::string> aliases = {};  // more names for it
  std::string backend = {};               // that will compute, for /props
  std::shared_ptr<const TextAssets> text;
  int64_t vocab_size = 0;
  EngineOptions engine = {};  // of the engine to come, with the lengths filled in
  int64_t kv_bytes_per_token = 0;
  int64_t memory_bytes = 0;  // weights, caches and workspace
};

// A model, and how it is loaded.
struct ModelEntry {
  ModelCard card;
  std::function<Result<std::unique_ptr<LoadedModel>>()> load;
};

class ServedModel {
 public:
  // index: in the service's models and in its pool. max_turns: answers that are remembered.
  ServedModel(ModelCard card, size_t index, size_t max_turns);

  const ModelCard& card() const { return card_; }
  size_t index() const { return index_; }
  const std::string& name() const { return card_.name; }
  bool HasName(std::string_view name) const;
  const TextAssets& text() const { return *card_.text; }
  int64_t vocab_size() const { return card_.vocab_size; }
  int64_t max_context() const { return card_.engine.max_context; }
  // Made with the first request that needs it. Errors: what GrammarCompiler::Create says.
  Result<GrammarCompiler*> grammars();
  // One for calls, whose grammars have the marks of the syntax. The first syntax counts: a model
  // has one.
  Result<GrammarCompiler*> call_grammars(const OutputSyntax& syntax);
  TurnStore& turns() { return turns_; }

 private:
  const ModelCard card_;
  const size_t index_;
  TurnStore turns_;
  std::mutex grammars_mutex_;  // guards the next two
  std::unique_ptr<GrammarCompiler> grammars_;
  std::unique_ptr<GrammarCompiler> call_grammars_;
};

}  // namespace tq::server

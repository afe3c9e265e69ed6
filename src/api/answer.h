// Answer: one generation as text: the engine's ids through the detokenizer and the stop strings.
// Thread: one reader; Cancel any.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/stop_strings.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace tq {

class Answer {
 public:
  // tokenizer may be null: ids only. It must outlive the answer. Errors: those of Engine::Submit.
  static Result<std::unique_ptr<Answer>> Start(Engine& engine, const Tokenizer* tokenizer,
                                               GenerateRequest request,
                                               std::vector<std::string> stop_strings);

  // Blocks for the next token and returns the text that is safe to show now (maybe ""); nullopt at
  // the end.
  std::optional<std::string> Next();
  void Cancel() { stream_->Cancel(); }

  // After the end. A stop string counts as kStop.
  FinishReason finish_reason() const;
  Status status() const { return stream_->status(); }
  GenerateStats stats() const { return stream_->stats(); }
  // Ids so far, those of a stop string included.
  const std::vector<int32_t>& ids() const { return ids_; }
  // Of ids(), if the request asked for them; else empty.
  const std::vector<TokenLogprobs>& logprobs() const { return logprobs_; }
  uint64_t seed() const { return seed_; }

 private:
  Answer(std::shared_ptr<TokenStream> stream, const Tokenizer* tokenizer,
         std::vector<std::string> stop_strings, const GenerateRequest& request);
  // Ends the generation and waits, so that the statistics are final.
  void StopStream();

  std::shared_ptr<TokenStream> stream_;
  std::optional<Detokenizer> detokenizer_;
  StopStrings stops_;
  std::vector<int32_t> ids_;
  std::vector<TokenLogprobs> logprobs_;
  bool with_logprobs_;
  uint64_t seed_;
  bool ended_ = false;
};

// `count` answers to one request, each with a seed of its own (RequestOfAnswer), submitted
// together: they share what the prefix cache keeps of the prompt. Errors: those of Engine::Submit.
Result<std::vector<std::unique_ptr<Answer>>> StartAnswers(
    Engine& engine, const Tokenizer* tokenizer, const GenerateRequest& request,
    const std::vector<std::string>& stop_strings, int64_t count);

}  // namespace tq

#include "api/answer.h"

#include <utility>

namespace tq {

Result<std::unique_ptr<Answer>> Answer::Start(Engine& engine, const Tokenizer* tokenizer,
                                              GenerateRequest request,
                                              std::vector<std::string> stop_strings) {
  TQ_ASSIGN_OR_RETURN(std::shared_ptr<TokenStream> stream, engine.Submit(std::move(request)));
  return std::unique_ptr<Answer>(new Answer(std::move(stream), tokenizer, std::move(stop_strings)));
}

Answer::Answer(std::shared_ptr<TokenStream> stream, const Tokenizer* tokenizer,
               std::vector<std::string> stop_strings)
    : stream_(std::move(stream)), stops_(std::move(stop_strings)) {
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, true);
}

std::optional<std::string> Answer::Next() {
  if (ended_) return std::nullopt;
  const std::optional<int32_t> id = stream_->Next();
  std::string text;
  if (id) {
    ids_.push_back(*id);
    if (detokenizer_) text = stops_.Push(detokenizer_->Push(*id));
    if (stops_.stopped()) StopStream();
    return text;
  }
  ended_ = true;
  if (!detokenizer_) return std::nullopt;
  text = stops_.Push(detokenizer_->Finish());
  text += stops_.Finish();
  return text;
}

void Answer::StopStream() {
  ended_ = true;
  stream_->Cancel();
  while (stream_->Next()) {
  }
}

FinishReason Answer::finish_reason() const {
  return stops_.stopped() ? FinishReason::kStop : stream_->finish_reason();
}

}  // namespace tq

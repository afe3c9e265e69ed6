#include "api/answer.h"

#include <utility>

namespace tq {

Result<std::unique_ptr<Answer>> Answer::Start(Engine& engine, const Tokenizer* tokenizer,
                                              GenerateRequest request,
                                              std::vector<std::string> stop_strings) {
  TQ_ASSIGN_OR_RETURN(std::shared_ptr<TokenStream> stream, engine.Submit(request));
  return std::unique_ptr<Answer>(
      new Answer(std::move(stream), tokenizer, std::move(stop_strings), request));
}

Answer::Answer(std::shared_ptr<TokenStream> stream, const Tokenizer* tokenizer,
               std::vector<std::string> stop_strings, const GenerateRequest& request)
    : stream_(std::move(stream)),
      stops_(std::move(stop_strings)),
      with_logprobs_(request.num_logprobs >= 0),
      seed_(request.sampling.seed) {
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, true);
}

std::optional<std::string> Answer::Next() {
  if (ended_) return std::nullopt;
  TokenLogprobs logprobs;
  const std::optional<int32_t> id = stream_->Next(&logprobs);
  std::string text;
  if (id) {
    ids_.push_back(*id);
    if (with_logprobs_) logprobs_.push_back(logprobs);
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

Result<std::vector<std::unique_ptr<Answer>>> StartAnswers(
    Engine& engine, const Tokenizer* tokenizer, const GenerateRequest& request,
    const std::vector<std::string>& stop_strings, int64_t count) {
  std::vector<std::unique_ptr<Answer>> answers;
  for (int64_t index = 0; index < count; ++index) {
    TQ_ASSIGN_OR_RETURN(
        std::unique_ptr<Answer> answer,
        Answer::Start(engine, tokenizer, RequestOfAnswer(request, index), stop_strings));
    answers.push_back(std::move(answer));
  }
  return answers;
}

FinishReason Answer::finish_reason() const {
  return stops_.stopped() ? FinishReason::kStop : stream_->finish_reason();
}

}  // namespace tq

#include "server/answer_text.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tq::server {

AnswerText::AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops,
                       const OutputParserOptions* parser, const std::vector<ToolSpec>& tools,
                       bool with_tokens)
    : tokenizer_(tokenizer), detokenizer_(tokenizer, false), stops_(std::move(stops)) {
  if (with_tokens) tokens_.emplace();
  if (parser == nullptr) return;
  parser_.emplace(*parser, tools);
  for (const std::string_view mark : SyntaxMarks(parser->syntax)) {
    const int32_t id = tokenizer.TokenId(mark);
    if (id >= 0) marks_.push_back(id);
  }
}

bool AnswerText::IsHidden(int32_t id) const {
  return tokenizer_.IsSpecial(id) && std::find(marks_.begin(), marks_.end(), id) == marks_.end();
}

void AnswerText::Push(int32_t id, const TokenLogprobs& logprobs, std::vector<AnswerEvent>& events) {
  ids_.push_back(id);
  if (!IsHidden(id)) {
    const std::string text = detokenizer_.Push(id);
    if (tokens_) tokens_->Push(id, text, logprobs);
    Interpret(stops_.Push(text));
    Deliver(events);
  }
  if (parser_ && parser_->in_reasoning()) ++reasoning_tokens_;
}

void AnswerText::Finish(std::vector<AnswerEvent>& events) {
  const std::string text = detokenizer_.Finish();
  if (tokens_) tokens_->Extend(text);
  Interpret(stops_.Push(text));
  Interpret(stops_.Finish());
  if (parser_) parser_->Finish(found_);
  Deliver(events);
}

void AnswerText::Interpret(const std::string& text) {
  if (text.empty()) return;
  if (parser_) return parser_->Feed(text, found_);
  found_.emplace_back();
  found_.back().text = text;
}

void AnswerText::Deliver(std::vector<AnswerEvent>& events) {
  const size_t first = events.size();
  for (OutputEvent& event : found_) events.push_back({std::move(event)});
  found_.clear();
  if (tokens_ && events.size() > first) tokens_->Match(std::span(events).subspan(first));
}

}  // namespace tq::server

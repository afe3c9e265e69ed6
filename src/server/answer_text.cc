#include "server/answer_text.h"

#include <algorithm>
#include <utility>

namespace tq::server {

AnswerText::AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops,
                       const OutputParserOptions* parser, const std::vector<ToolSpec>& tools)
    : tokenizer_(tokenizer), detokenizer_(tokenizer, false), stops_(std::move(stops)) {
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

void AnswerText::Push(int32_t id, std::vector<OutputEvent>& events) {
  ids_.push_back(id);
  if (!IsHidden(id)) Interpret(stops_.Push(detokenizer_.Push(id)), events);
  if (parser_ && parser_->in_reasoning()) ++reasoning_tokens_;
}

void AnswerText::Finish(std::vector<OutputEvent>& events) {
  Interpret(stops_.Push(detokenizer_.Finish()), events);
  Interpret(stops_.Finish(), events);
  if (parser_) parser_->Finish(events);
}

void AnswerText::Interpret(const std::string& text, std::vector<OutputEvent>& events) {
  if (text.empty()) return;
  if (parser_) return parser_->Feed(text, events);
  events.emplace_back();
  events.back().text = text;
}

}  // namespace tq::server

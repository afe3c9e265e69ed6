#include "server/shown_tokens.h"

#include <algorithm>
#include <utility>

namespace tq::server {

using Kind = OutputEvent::Kind;

void ShownTokens::Push(int32_t id, std::string_view text, const TokenLogprobs& logprobs) {
  const size_t begin = text_.size();
  text_ += text;
  tokens_.push_back({{id, logprobs, 0}, begin, text_.size()});
}

void ShownTokens::Match(std::span<AnswerEvent> events) {
  constexpr size_t kNone = std::string::npos;
  // From the last one on: what is not given out yet is the end of the text, so the last place of a
  // text is its own, and an earlier one may be in a mark.
  std::vector<size_t> places(events.size(), kNone);
  size_t limit = text_.size();
  for (size_t i = events.size(); i-- > 0;) {
    const OutputEvent& event = events[i].event;
    if (event.kind != Kind::kText && event.kind != Kind::kReasoning) continue;
    places[i] = std::string_view(text_).substr(0, limit).rfind(event.text);
    if (places[i] != kNone) limit = places[i];
  }
  size_t end = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const OutputEvent& event = events[i].event;
    // What stands before the token that ended a call is no text.
    if (event.kind == Kind::kToolEnd && !tokens_.empty()) end = std::max(end, tokens_.back().begin);
    if (places[i] == kNone) continue;
    end = std::max(end, places[i] + event.text.size());
    if (event.kind == Kind::kText) Take(places[i], places[i] + event.text.size(), events[i]);
  }
  Forget(end);
}

void ShownTokens::Take(size_t begin, size_t end, AnswerEvent& event) {
  for (Token& token : tokens_) {
    // A token without bytes of its own is part of the character that follows.
    const size_t token_end = std::max(token.end, token.begin + 1);
    if (token.taken || token_end <= begin || token.begin >= end) continue;
    token.taken = true;
    event.tokens.push_back(std::move(token.shown));
    event.tokens.back().offset = token.begin > begin ? token.begin - begin : 0;
  }
}

void ShownTokens::Forget(size_t end) {
  std::erase_if(tokens_, [end](const Token& token) {
    return token.taken || (token.end <= end && token.begin < end);
  });
  for (Token& token : tokens_) {
    token.begin -= std::min(token.begin, end);
    token.end -= std::min(token.end, end);
  }
  text_.erase(0, end);
}

}  // namespace tq::server

// ShownTokens: which tokens an answer's events show, for log probabilities. What the parser and the
// stop strings leave out (marks, thoughts, calls, what follows a stop) shows none. Thread: one
// caller.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/output/output_parser.h"
#include "sampling/logprobs.h"

namespace tq::server {

struct ShownToken {
  int32_t id = 0;
  TokenLogprobs logprobs;
  size_t offset = 0;  // bytes of the event's text before it
};

// One piece of what an answer means, and the tokens that it is made of: of text alone, and when the
// request wants to know them.
struct AnswerEvent {
  OutputEvent event;
  std::vector<ShownToken> tokens = {};
};

class ShownTokens {
 public:
  // text: what the token adds to the text; may be nothing (half a character).
  void Push(int32_t id, std::string_view text, const TokenLogprobs& logprobs);
  // Text that the last tokens held back.
  void Extend(std::string_view text) { text_ += text; }
  // Gives each text among the events that the last Push led to its tokens. A token belongs to the
  // first text that shows a byte of it.
  void Match(std::span<AnswerEvent> events);

 private:
  struct Token {
    ShownToken shown;
    size_t begin;  // in text_
    size_t end;
    bool taken = false;
  };
  void Take(size_t begin, size_t end, AnswerEvent& event);
  void Forget(size_t end);

  std::string text_;  // of tokens that no event has shown so far
  std::vector<Token> tokens_;
};

}  // namespace tq::server

// AnswerText: the ids of an answer -> its text -> stop strings -> text, thoughts and calls. Thread:
// one caller.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/output/output_parser.h"
#include "chat/stop_strings.h"
#include "server/shown_tokens.h"
#include "tokenizer/tokenizer.h"

namespace tq::server {

class AnswerText {
 public:
  // parser: null for an answer that is all text. with_tokens: texts come with their tokens. The
  // tokenizer outlives this.
  AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops,
             const OutputParserOptions* parser, const std::vector<ToolSpec>& tools,
             bool with_tokens);

  // Appends what is certain. Nothing comes after a stop string.
  void Push(int32_t id, const TokenLogprobs& logprobs, std::vector<AnswerEvent>& events);
  void Finish(std::vector<AnswerEvent>& events);
  bool stopped() const { return stops_.stopped(); }
  const std::string& stop_string() const { return stops_.stop(); }
  int64_t reasoning_tokens() const { return reasoning_tokens_; }
  // All that was generated so far, special tokens too.
  std::string all() const { return tokenizer_.Decode(ids_, false); }

 private:
  // Whether the text shows nothing of this token.
  bool IsHidden(int32_t id) const;
  void Interpret(const std::string& text);
  // Appends what Interpret found.
  void Deliver(std::vector<AnswerEvent>& events);

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  std::optional<OutputParser> parser_;
  std::optional<ShownTokens> tokens_;
  std::vector<OutputEvent> found_;  // reused
  std::vector<int32_t> marks_;      // special tokens that the parser reads
  std::vector<int32_t> ids_;
  int64_t reasoning_tokens_ = 0;
};

}  // namespace tq::server

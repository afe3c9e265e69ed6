// OutputParser: turns the text of one answer, as it is generated, into text, thoughts and tool
// calls. What comes out depends on the text alone, not on how it was cut into pieces: the texts of
// neighbouring events of one kind, put together, are the same. Time is linear in the text; memory
// is bounded by what is undecided, at most the part of a call that may still turn out to be text.
//
// Feed it behind the detokenizer (with the special tokens of SyntaxMarks kept, others dropped) and
// behind the stop strings. Thread: one caller.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/messages.h"
#include "chat/output/output_syntax.h"

namespace tq {

// One piece of what an answer means.
struct OutputEvent {
  enum class Kind : uint8_t { kText, kReasoning, kToolBegin, kToolArguments, kToolEnd };
  Kind kind = Kind::kText;
  int tool_index = -1;   // kTool*: 0, 1, ... of this answer
  std::string text;      // text, thoughts, JSON text of arguments (a delta); kToolBegin: the name
  std::string tool_id;   // kToolBegin: the model's own id, if it wrote one
  bool complete = true;  // kToolEnd: the arguments are a whole JSON object; false: cut or malformed
};

struct OutputParserOptions {
  OutputSyntax syntax;
  // The prompt ends inside the thoughts: PromptOpensReasoning of this request's prompt.
  bool starts_in_reasoning = false;
  // false: thoughts come as text, with their marks (also the one that the prompt opened).
  bool parse_reasoning = true;
  // false: calls come as text. Set it to whether the request offers tools.
  bool parse_tools = true;
  // true: the arguments of a call come as they are written, once its name is known and the first
  // value has begun. When the rest is malformed, the call ends there (complete = false) and the
  // rest comes as text. false: a call comes when its closing mark has come; one that is malformed
  // or has no closing mark comes as text, with its marks.
  bool stream_arguments = true;
  // false: white space between two calls, or behind the last one, is dropped.
  bool keep_space_between_calls = false;
};

class OutputParser {
 public:
  // tools: those offered. Their schemas give the types of arguments that a syntax writes without
  // quotes; names matter only to syntaxes without marks, which take no others. Copied.
  OutputParser(const OutputParserOptions& options, const std::vector<ToolSpec>& tools);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  // Appends what is certain by now. Events never hold half a character.
  void Feed(std::string_view piece, std::vector<OutputEvent>& events);
  // The end of the text: everything that was held back. An open call ends.
  void Finish(std::vector<OutputEvent>& events);

  bool made_tool_calls() const;
  // Where the text stands: for a budget of thoughts.
  bool in_reasoning() const;
  bool in_tool_call() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Adds an event to the message of an answer that is not streamed: text to content, thoughts to
// reasoning, calls to tool_calls (id: the model's own, else empty).
void AddEvent(const OutputEvent& event, ChatMessage& message);

}  // namespace tq

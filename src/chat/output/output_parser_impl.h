// What is inside of an OutputParser. Private to this folder: output_parser.cc has its door,
// output_states.cc what each byte does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/output/argument_types.h"
#include "chat/output/call_region.h"
#include "chat/output/call_sink.h"
#include "chat/output/mark_matcher.h"
#include "chat/output/output_parser.h"
#include "chat/output/tool_format.h"
#include "chat/output/utf8_stream.h"

namespace tq {

enum class OutputMark : uint8_t {
  kThinkOpen,
  kThinkClose,
  kToolOpen,
  kToolClose,
  kIgnored,
  kMessageEnd,    // harmony
  kMessageStart,  // harmony
};

// A matcher whose marks mean something.
class MarkSet {
 public:
  void Add(std::string_view text, OutputMark mark) {
    if (text.empty()) return;
    texts_.push_back(text);
    marks_.push_back(mark);
  }
  void Build() {
    matcher_ = MarkMatcher(texts_);
    for (const std::string_view text : texts_) begins_[static_cast<unsigned char>(text[0])] = true;
  }
  MarkMatcher& matcher() { return matcher_; }
  OutputMark mark(int index) const { return marks_[static_cast<size_t>(index)]; }
  std::string_view text(int index) const { return texts_[static_cast<size_t>(index)]; }
  bool Begins(char c) const { return begins_[static_cast<unsigned char>(c)]; }

 private:
  std::vector<std::string_view> texts_;
  std::vector<OutputMark> marks_;
  MarkMatcher matcher_;
  std::array<bool, 256> begins_ = {};
};

class OutputParser::Impl {
 public:
  Impl(const OutputParserOptions& options, const std::vector<ToolSpec>& tools);

  void Feed(std::string_view piece, std::vector<OutputEvent>& events);
  void Finish(std::vector<OutputEvent>& events);

  bool made_tool_calls() const { return sink_.num_calls() > 0; }
  bool in_reasoning() const {
    if (state_ == State::kStart) return starts_in_reasoning_;
    return state_ == State::kReasoning || state_ == State::kHeld ||
           (state_ == State::kRegion && in_thoughts_);
  }
  bool in_tool_call() const { return state_ == State::kRegion && !in_thoughts_; }

 private:
  enum class State : uint8_t {
    kStart,  // white space, perhaps; thoughts may open
    kReasoning,
    kContent,
    kRegion,  // of calls
    kHeld,    // thoughts end with whole calls, so far
    kHeader,  // harmony
  };

  void BuildMarks();
  void AddOpens(MarkSet& set) const {
    for (const std::string_view open : format_.open) set.Add(open, OutputMark::kToolOpen);
  }
  MarkSet& Marks() {
    if (state_ == State::kStart) return start_marks_;
    if (state_ == State::kHeld) return held_marks_;
    return state_ == State::kReasoning ? reasoning_marks_ : content_marks_;
  }
  void PushAll(std::string_view text, std::vector<OutputEvent>& events);
  void Push(char c);
  void PushMarked(char c);
  void TakeByte(char c);
  void OnMark(OutputMark mark, std::string_view text);
  void PushRegion(char c);
  void PushHeader(char c);
  void OpenRegion(std::string_view mark);
  void EndThoughts();
  void LeaveHeld();
  void StartMessage();
  void FinishRegion();

  void Emit(OutputEvent::Kind kind, std::string_view text);
  void EmitText(std::string_view text);
  void EmitReasoning(std::string_view text) {
    options_.parse_reasoning ? Emit(OutputEvent::Kind::kReasoning, text) : EmitText(text);
  }
  void EmitStart() {
    const std::string space = std::exchange(start_space_, {});
    starts_in_reasoning_ ? EmitReasoning(space) : EmitText(space);
  }
  void ReleaseCalls();

  OutputParserOptions options_;
  const ToolFormat& format_;
  ToolTypes types_;
  ReasoningMarks think_;
  bool is_harmony_;
  bool starts_in_reasoning_ = false;
  MarkSet start_marks_;
  MarkSet reasoning_marks_;
  MarkSet content_marks_;
  MarkSet held_marks_;

  Utf8Stream utf8_;
  CallSink sink_;
  CallRegion region_;
  State state_ = State::kStart;
  std::vector<OutputEvent>* events_ = nullptr;  // of the running call
  bool has_fed_ = false;
  std::string start_space_;
  std::string header_;
  // What the open region holds that may still be text.
  std::string raw_;
  bool in_thoughts_ = false;      // the region is within thoughts
  bool has_given_out_ = false;    // calls of this region
  bool swallows_close_ = false;   // the rest of a malformed call ends with a mark
  bool strips_newlines_ = false;  // behind thoughts
  bool is_fresh_ = true;          // only white space so far
  bool after_call_ = true;        // white space may be dropped
  std::string space_;
};

}  // namespace tq

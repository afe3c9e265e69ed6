#include "chat/output/output_parser.h"

#include <algorithm>
#include <utility>

#include "chat/output/json_scanner.h"
#include "chat/output/output_parser_impl.h"

namespace tq {
namespace {

using Kind = OutputEvent::Kind;

bool IsSpace(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return IsJsonSpace(c); });
}

}  // namespace

OutputParser::Impl::Impl(const OutputParserOptions& options, const std::vector<ToolSpec>& tools)
    : options_(options),
      format_(FormatOf(options.parse_tools ? options.syntax.tools : ToolSyntax::kNone)),
      types_(tools),
      think_(MarksOf(options.syntax.reasoning)),
      is_harmony_(options.syntax.reasoning == ReasoningSyntax::kHarmony ||
                  options.syntax.tools == ToolSyntax::kHarmony),
      region_(format_, types_, sink_) {
  if (is_harmony_) think_ = {};
  starts_in_reasoning_ = options.starts_in_reasoning && (is_harmony_ || !think_.open.empty());
  BuildMarks();
  state_ = !is_harmony_ ? State::kStart : starts_in_reasoning_ ? State::kReasoning : State::kHeader;
}

void OutputParser::Impl::BuildMarks() {
  start_marks_.Add(think_.open, OutputMark::kThinkOpen);
  if (starts_in_reasoning_) start_marks_.Add(think_.close, OutputMark::kThinkClose);
  AddOpens(start_marks_);
  reasoning_marks_.Add(think_.close, OutputMark::kThinkClose);
  if (!is_harmony_) AddOpens(reasoning_marks_);
  AddOpens(content_marks_);
  AddOpens(held_marks_);
  content_marks_.Add(format_.close, OutputMark::kToolClose);
  content_marks_.Add(format_.close_too, OutputMark::kToolClose);
  if (options_.syntax.tools == ToolSyntax::kLlama4) {
    content_marks_.Add("<|python_end|>", OutputMark::kIgnored);
  }
  if (options_.syntax.reasoning == ReasoningSyntax::kCommand ||
      options_.syntax.tools == ToolSyntax::kCommand) {
    for (MarkSet* set : {&content_marks_, &start_marks_}) {
      set->Add("<|START_RESPONSE|>", OutputMark::kIgnored);
      set->Add("<|END_RESPONSE|>", OutputMark::kIgnored);
    }
  }
  if (is_harmony_) {
    for (MarkSet* set : {&content_marks_, &reasoning_marks_}) {
      for (const char* end : {"<|end|>", "<|call|>", "<|return|>", "<|eom|>"}) {
        set->Add(end, OutputMark::kMessageEnd);
      }
      set->Add("<|start|>", OutputMark::kMessageStart);
      set->Add("<|channel|>", OutputMark::kMessageStart);
    }
  }
  for (MarkSet* set : {&start_marks_, &reasoning_marks_, &content_marks_, &held_marks_}) {
    set->Build();
  }
}

void OutputParser::Impl::Feed(std::string_view piece, std::vector<OutputEvent>& events) {
  std::string text;
  utf8_.Push(piece, text);
  PushAll(text, events);
}

void OutputParser::Impl::PushAll(std::string_view text, std::vector<OutputEvent>& events) {
  events_ = &events;
  if (!has_fed_ && !text.empty()) {
    has_fed_ = true;
    if (starts_in_reasoning_ && !options_.parse_reasoning) EmitText(think_.open);
  }
  while (!text.empty()) {
    // Prose goes through at once.
    const bool is_prose = state_ == State::kReasoning || (state_ == State::kContent && !is_fresh_ &&
                                                          !strips_newlines_ && !after_call_);
    size_t end = 0;
    if (is_prose && Marks().matcher().empty()) {
      while (end < text.size() && !Marks().Begins(text[end])) ++end;
    }
    if (end > 0) {
      state_ == State::kReasoning ? EmitReasoning(text.substr(0, end))
                                  : EmitText(text.substr(0, end));
    } else {
      Push(text[0]);
      end = 1;
    }
    text.remove_prefix(end);
  }
  events_ = nullptr;
}

void OutputParser::Impl::Emit(Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (events_->empty() || events_->back().kind != kind) {
    events_->push_back({kind, -1, {}, {}});
  }
  events_->back().text += text;
}

void OutputParser::Impl::EmitText(std::string_view text) {
  if (strips_newlines_) {
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    if (text.empty()) return;
    strips_newlines_ = false;
  }
  if (after_call_ && !options_.keep_space_between_calls) {
    space_ += text;
    if (IsSpace(text)) return;
    after_call_ = false;
    Emit(Kind::kText, std::exchange(space_, {}));
    return;
  }
  Emit(Kind::kText, text);
}

void OutputParser::Impl::ReleaseCalls() {
  if (!sink_.has_released()) return;
  space_.clear();
  after_call_ = true;
  strips_newlines_ = false;
  has_given_out_ = true;
  raw_.clear();
  for (OutputEvent& event : sink_.TakeReleased()) {
    const bool joins = event.kind == Kind::kToolArguments && !events_->empty() &&
                       events_->back().kind == Kind::kToolArguments;
    if (joins) {
      events_->back().text += event.text;
    } else {
      events_->push_back(std::move(event));
    }
  }
}

void OutputParser::Impl::FinishRegion() {
  if (region_.Finish(true)) sink_.ReleaseAll();
  if (in_thoughts_ && !sink_.has_released()) {
    LeaveHeld();
    return;
  }
  ReleaseCalls();
  sink_.Drop();
  state_ = State::kContent;
  // Behind calls the beginning of a closing mark is no text.
  std::string_view rest = raw_;
  while (!rest.empty() && IsJsonSpace(rest.front())) rest.remove_prefix(1);
  const bool is_mark =
      format_.close.starts_with(rest) || (!rest.empty() && format_.call_close.starts_with(rest));
  if (!has_given_out_ || !is_mark) EmitText(raw_);
  raw_.clear();
}

void OutputParser::Impl::Finish(std::vector<OutputEvent>& events) {
  std::string text;
  utf8_.Finish(text);
  PushAll(text, events);
  events_ = &events;
  switch (state_) {
    case State::kStart:
      start_space_ += start_marks_.matcher().Take();
      EmitStart();
      break;
    case State::kReasoning:
      EmitReasoning(reasoning_marks_.matcher().Take());
      break;
    case State::kContent:
      EmitText(content_marks_.matcher().Take());
      break;
    case State::kRegion:
      FinishRegion();
      break;
    case State::kHeld:
      if (held_marks_.matcher().empty()) {
        sink_.ReleaseAll();
        ReleaseCalls();
      } else {
        raw_ += held_marks_.matcher().Take();
        LeaveHeld();
      }
      break;
    case State::kHeader:
      if (!header_.starts_with("<|")) EmitText(header_);
      break;
  }
  // White space alone is an answer, but not one beside calls.
  if (!made_tool_calls()) Emit(Kind::kText, space_);
  space_.clear();
  events_ = nullptr;
}

OutputParser::OutputParser(const OutputParserOptions& options, const std::vector<ToolSpec>& tools)
    : impl_(std::make_unique<Impl>(options, tools)) {}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;

void OutputParser::Feed(std::string_view piece, std::vector<OutputEvent>& events) {
  impl_->Feed(piece, events);
}
void OutputParser::Finish(std::vector<OutputEvent>& events) { impl_->Finish(events); }
bool OutputParser::made_tool_calls() const { return impl_->made_tool_calls(); }
bool OutputParser::in_reasoning() const { return impl_->in_reasoning(); }
bool OutputParser::in_tool_call() const { return impl_->in_tool_call(); }

void AddEvent(const OutputEvent& event, ChatMessage& message) {
  switch (event.kind) {
    case Kind::kText:
      if (message.content.empty()) message.content.push_back({ContentPart::Kind::kText, {}, {}});
      message.content.back().text += event.text;
      break;
    case Kind::kReasoning:
      message.reasoning += event.text;
      break;
    case Kind::kToolBegin:
      message.tool_calls.push_back({event.tool_id, event.text, ""});
      break;
    case Kind::kToolArguments:
      message.tool_calls.back().arguments += event.text;
      break;
    case Kind::kToolEnd:
      break;
  }
}

}  // namespace tq

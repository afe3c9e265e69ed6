// What each byte of an answer does, state by state.
#include <utility>

#include "chat/output/harmony_header.h"
#include "chat/output/json_scanner.h"
#include "chat/output/output_parser_impl.h"

namespace tq {

void OutputParser::Impl::Push(char c) {
  if (state_ == State::kRegion) {
    PushRegion(c);
  } else if (state_ == State::kHeader) {
    PushHeader(c);
  } else {
    PushMarked(c);
  }
}

void OutputParser::Impl::PushMarked(char c) {
  const State state = state_;
  MarkSet& set = Marks();
  std::string released;
  const int mark = set.matcher().Push(c, released);
  for (const char byte : released) state_ == state ? TakeByte(byte) : Push(byte);
  if (mark != MarkMatcher::kNone) {
    OnMark(set.mark(mark), set.text(mark));
  } else if (state_ != state) {
    for (const char byte : set.matcher().Take()) Push(byte);
  }
}

// A byte that belongs to no mark.
void OutputParser::Impl::TakeByte(char c) {
  switch (state_) {
    case State::kStart:
      if (IsJsonSpace(c)) {
        start_space_ += c;
        return;
      }
      EmitStart();
      state_ = starts_in_reasoning_ ? State::kReasoning : State::kContent;
      Push(c);
      return;
    case State::kReasoning:
      EmitReasoning({&c, 1});
      return;
    case State::kHeld:
      if (IsJsonSpace(c)) {
        raw_ += c;
        return;
      }
      LeaveHeld();
      Push(c);
      return;
    default:
      break;
  }
  if (is_fresh_ && !IsJsonSpace(c)) {
    is_fresh_ = false;
    if (format_.bare == c && !is_harmony_) {
      OpenRegion("");
      PushRegion(c);
      return;
    }
  }
  EmitText({&c, 1});
}

void OutputParser::Impl::LeaveHeld() {
  sink_.Drop();
  state_ = State::kReasoning;
  EmitReasoning(std::exchange(raw_, {}));
}

void OutputParser::Impl::OpenRegion(std::string_view mark) {
  if (state_ != State::kHeld) {
    raw_.clear();
    in_thoughts_ = state_ == State::kReasoning || (state_ == State::kStart && starts_in_reasoning_);
    if (state_ == State::kStart) EmitStart();
    sink_.SetStreams(options_.stream_arguments && !in_thoughts_);
  }
  raw_ += mark;
  has_given_out_ = false;
  is_fresh_ = false;
  state_ = State::kRegion;
  region_.Open(!mark.empty());
}

void OutputParser::Impl::EndThoughts() {
  if (!options_.parse_reasoning) EmitText(think_.close);
  strips_newlines_ = options_.parse_reasoning;
  state_ = State::kContent;
}

void OutputParser::Impl::OnMark(OutputMark mark, std::string_view text) {
  switch (mark) {
    case OutputMark::kThinkOpen:
      // The prompt may have opened the thoughts, and the model does so again.
      if (!options_.parse_reasoning && !starts_in_reasoning_) {
        EmitText(start_space_);
        EmitText(text);
      }
      start_space_.clear();
      state_ = State::kReasoning;
      break;
    case OutputMark::kThinkClose:
      if (state_ == State::kStart) EmitStart();
      EndThoughts();
      break;
    case OutputMark::kToolOpen:
      OpenRegion(text);
      break;
    case OutputMark::kToolClose:
      if (!swallows_close_) {
        is_fresh_ = false;
        EmitText(text);
      }
      swallows_close_ = false;
      break;
    case OutputMark::kIgnored:
      break;
    case OutputMark::kMessageEnd:
      header_.clear();
      state_ = State::kHeader;
      break;
    case OutputMark::kMessageStart:
      header_ = text;
      state_ = State::kHeader;
      break;
  }
}

void OutputParser::Impl::PushRegion(char c) {
  const bool collects = !sink_.open_is_certain();
  if (collects) raw_ += c;
  if (in_thoughts_ && raw_.ends_with(think_.close)) {
    // Thoughts that only speak of calls.
    raw_.resize(raw_.size() - think_.close.size());
    region_.Finish(false);
    LeaveHeld();
    EndThoughts();
    return;
  }
  const CallRegion::Step step = region_.Push(c);
  if (step == CallRegion::Step::kMore || step == CallRegion::Step::kCallEnd) {
    if (in_thoughts_) return;
    ReleaseCalls();
    if (step == CallRegion::Step::kCallEnd && has_given_out_) raw_.clear();
    return;
  }
  std::string unread(1, c);
  if (step == CallRegion::Step::kDone) {
    unread.clear();
  } else if (collects) {
    unread = raw_.substr(raw_.size() - region_.unread());
    raw_.resize(raw_.size() - unread.size());
  }
  if (step == CallRegion::Step::kBad) region_.Finish(false);
  if (in_thoughts_) {
    state_ = State::kHeld;
    if (step == CallRegion::Step::kBad) LeaveHeld();
  } else {
    if (step != CallRegion::Step::kBad) sink_.ReleaseAll();
    ReleaseCalls();
    sink_.Drop();
    swallows_close_ = step == CallRegion::Step::kBad && has_given_out_;
    state_ = State::kContent;
    // White space, or what is no call; behind the closing mark there is nothing.
    const std::string rest = std::exchange(raw_, {});
    if (step != CallRegion::Step::kDone) EmitText(rest);
  }
  for (const char byte : unread) Push(byte);
}

void OutputParser::Impl::PushHeader(char c) {
  constexpr std::string_view kMessage = "<|message|>";
  header_ += c;
  if (header_.ends_with(kMessage)) {
    header_.resize(header_.size() - kMessage.size());
    StartMessage();
  } else if (!MayBeHarmonyHeader(header_)) {
    // What came before is text as it is: read again, it could begin the same header.
    state_ = State::kContent;
    is_fresh_ = false;
    header_.pop_back();
    EmitText(std::exchange(header_, {}));
    Push(c);
  }
}

void OutputParser::Impl::StartMessage() {
  HarmonyHeader header =
      ParseHarmonyHeader(std::exchange(header_, {}), format_.syntax == ToolSyntax::kHarmony);
  state_ = header.is_reasoning ? State::kReasoning : State::kContent;
  if (header.call.empty()) return;
  OpenRegion("");
  region_.OpenArguments(std::move(header.call));
}

}  // namespace tq

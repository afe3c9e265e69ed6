#include "chat/output/call_region.h"

#include <cctype>
#include <utility>

namespace tq {
namespace {

using Shape = ToolFormat::Shape;

enum BetweenMark { kClose, kCloseToo, kCallOpen, kCallClose, kSkipped };

}  // namespace

CallRegion::CallRegion(const ToolFormat& format, const ToolTypes& types, CallSink& sink)
    : format_(format),
      types_(types),
      sink_(sink),
      matcher_(
          {format.close, format.close_too, format.call_open, format.call_close, format.skipped}) {}

void CallRegion::Open(bool has_mark) {
  matcher_.Take();
  reader_.reset();
  has_call_ = is_message_ = false;
  only_known_names_ = !has_mark;
  if (format_.open_is_call) reader_ = std::make_unique<NamedCallReader>(Context());
}

void CallRegion::OpenArguments(std::string name) {
  Open(true);
  is_message_ = true;
  auto reader = std::make_unique<NamedCallReader>(Context());
  reader->StartArguments(std::move(name));
  reader_ = std::move(reader);
}

CallRegion::Step CallRegion::Push(char c) {
  unread_ = 1;
  return reader_ ? PushReader(c) : PushBetween(c);
}

CallRegion::Step CallRegion::StartReader(std::unique_ptr<CallReader> reader, char c) {
  reader_ = std::move(reader);
  return PushReader(c);
}

CallRegion::Step CallRegion::PushReader(char c) {
  const ReadStep step = reader_->Push(c);
  if (step == ReadStep::kMore) return Step::kMore;
  if (step == ReadStep::kBad) return Step::kBad;
  reader_.reset();
  has_call_ = true;
  if (format_.close.empty()) sink_.ReleaseAll();
  if (step == ReadStep::kClosed) return Step::kDone;
  if (step == ReadStep::kEnd) {
    return format_.open_is_call || is_message_ ? Step::kDone : Step::kCallEnd;
  }
  return is_message_ ? Step::kLeave : PushBetween(c);
}

CallRegion::Step CallRegion::PushBetween(char c) {
  released_.clear();
  const int mark = matcher_.Push(c, released_);
  for (size_t i = 0; i < released_.size(); ++i) {
    const char byte = released_[i];
    if (IsJsonSpace(byte)) continue;
    if ((byte == ';' || byte == ',') && has_call_ && format_.shape == Shape::kJson) continue;
    const bool is_json = byte == '{' || byte == '[';
    if (is_json &&
        (format_.shape == Shape::kJson || (format_.shape == Shape::kNamed && !has_call_))) {
      return StartReader(std::make_unique<JsonCallReader>(Context()), byte);
    }
    if (format_.shape == Shape::kPython && byte == '[' && !has_call_) {
      return StartReader(std::make_unique<LiteralCallReader>(Context(), true), byte);
    }
    const bool is_letter = std::isalpha(static_cast<unsigned char>(byte)) != 0 || byte == '_';
    if (is_letter && format_.syntax == ToolSyntax::kLlama3 && !has_call_) {
      return StartReader(std::make_unique<LiteralCallReader>(Context(), false), byte);
    }
    const bool names_at_once = format_.call_open.empty() || format_.syntax == ToolSyntax::kKimi;
    if (is_letter && format_.shape == Shape::kNamed && names_at_once && !has_call_) {
      return StartReader(std::make_unique<NamedCallReader>(Context()), byte);
    }
    unread_ = released_.size() - i;
    return has_call_ && format_.close.empty() ? Step::kLeave : Step::kBad;
  }
  switch (mark) {
    case kClose:
    case kCloseToo:
      return has_call_ ? Step::kDone : Step::kBad;
    case kCallOpen:
      if (format_.shape == Shape::kGemma) {
        reader_ = std::make_unique<LiteralCallReader>(Context(), false);
      } else {
        reader_ = std::make_unique<NamedCallReader>(Context());
      }
      return Step::kMore;
    default:
      return Step::kMore;
  }
}

bool CallRegion::Finish(bool at_end) {
  if (reader_) reader_->Finish(at_end);
  const bool is_whole = !reader_ && has_call_ && format_.close.empty();
  reader_.reset();
  return is_whole;
}

}  // namespace tq

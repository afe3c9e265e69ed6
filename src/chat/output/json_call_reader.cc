#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/output/call_reader.h"

namespace tq {
namespace {

constexpr size_t kMaxNameBytes = 256;

// The text that a JSON string of well-formed escapes means.
bool Unquote(std::string_view json, std::string* text) {
  const Result<OrderedJson> value = ParseOrderedJson(json, "call");
  if (!value.ok() || !value->is_string()) return false;
  *text = value->get<std::string>();
  return true;
}

std::string Trimmed(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

bool ReaderContext::Begin(std::string name, std::string id) const {
  name = Trimmed(name);
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  if (only_known_names && !types.Knows(name)) return false;
  sink.Begin(std::move(name), std::move(id));
  return true;
}

ReadStep JsonCallReader::BeginCall() {
  name_.clear();
  id_.clear();
  arguments_.clear();
  has_arguments_ = arguments_end_ = has_begun_ = false;
  depth_ = 1;
  state_ = State::kKeyOrEnd;
  return ReadStep::kMore;
}

// Gives out what is there once the name is known.
void JsonCallReader::FlushArguments(bool whole) {
  if (!has_begun_) return;
  if (!arguments_.empty()) context_.sink.Arguments(arguments_);
  arguments_.clear();
  if (whole || scanner_.has_inner_value()) context_.sink.Certain();
}

// Arguments that are there at once. false: they are no object, or the second ones.
bool JsonCallReader::TakeArguments(std::string_view json) {
  if (has_arguments_) return false;
  has_arguments_ = arguments_end_ = true;
  arguments_ = json;
  FlushArguments(true);
  state_ = State::kAfterValue;
  return true;
}

ReadStep JsonCallReader::BeginValue(char c) {
  if (key_ == Key::kFunction && c == '{') {
    if (depth_ != 1) return ReadStep::kBad;
    depth_ = 2;
    state_ = State::kKeyOrEnd;
    return ReadStep::kMore;
  }
  scanner_.Reset();
  scanned_.clear();
  if (key_ == Key::kArguments && c == '{') {
    if (has_arguments_) return ReadStep::kBad;
    has_arguments_ = true;
    state_ = State::kArguments;
    return PushArguments(c);
  }
  if (c == '"' && key_ != Key::kOther) {
    state_ = State::kText;
    return PushText(c);
  }
  if (key_ == Key::kName || (key_ == Key::kArguments && c != 'n')) return ReadStep::kBad;
  state_ = State::kSkipped;
  return PushSkipped(c);
}

ReadStep JsonCallReader::EndText() {
  std::string text;
  if (!Unquote(scanned_, &text)) return ReadStep::kBad;
  state_ = State::kAfterValue;
  if (key_ == Key::kId) {
    id_ = std::move(text);
  } else if (key_ == Key::kArguments) {
    // An object in a string is meant as one; other text is passed on as it is.
    if (Trimmed(text).empty()) text = "{}";
    std::string mended;
    if (text.find("\\u") != std::string::npos && IsJsonValue(text, &mended)) text = mended;
    const Result<OrderedJson> inner = ParseOrderedJson(text, "arguments");
    if (!TakeArguments(text)) return ReadStep::kBad;
    arguments_end_ = inner.ok() && inner->is_object();
  } else if (name_.empty()) {
    name_ = std::move(text);
    if (!context_.Begin(name_, id_)) return ReadStep::kBad;
    has_begun_ = true;
    if (has_arguments_) FlushArguments(arguments_end_);
  }
  return ReadStep::kMore;
}

ReadStep JsonCallReader::PushText(char c) {
  switch (scanner_.Push(c, scanned_)) {
    case ScanStep::kMore:
      return ReadStep::kMore;
    case ScanStep::kEnd:
      return EndText();
    default:
      return ReadStep::kBad;
  }
}

ReadStep JsonCallReader::PushSkipped(char c) {
  scanned_.clear();
  const ScanStep step = scanner_.Push(c, scanned_);
  if (step == ScanStep::kBad) return ReadStep::kBad;
  if (step == ScanStep::kMore) return ReadStep::kMore;
  state_ = State::kAfterValue;
  // "arguments": null
  if (key_ == Key::kArguments && !TakeArguments("{}")) return ReadStep::kBad;
  return step == ScanStep::kEndBefore ? Push(c) : ReadStep::kMore;
}

ReadStep JsonCallReader::PushArguments(char c) {
  const ScanStep step = scanner_.Push(c, arguments_);
  if (step == ScanStep::kBad) return ReadStep::kBad;
  arguments_end_ = step == ScanStep::kEnd;
  FlushArguments(arguments_end_);
  if (arguments_end_) state_ = State::kAfterValue;
  return ReadStep::kMore;
}

ReadStep JsonCallReader::EndObject() {
  if (--depth_ > 0) {
    state_ = State::kAfterValue;
    return ReadStep::kMore;
  }
  if (!has_begun_) return ReadStep::kBad;
  if (!has_arguments_) TakeArguments("{}");
  context_.sink.End(arguments_end_);
  has_begun_ = false;
  state_ = State::kAfterItem;
  return in_list_ ? ReadStep::kMore : ReadStep::kEnd;
}

ReadStep JsonCallReader::Push(char c) {
  switch (state_) {
    case State::kKeyText: {
      const ScanStep step = scanner_.Push(c, scanned_);
      if (step == ScanStep::kBad) return ReadStep::kBad;
      if (step != ScanStep::kEnd) return ReadStep::kMore;
      key_ = Key::kOther;
      if (scanned_ == "\"name\"" || scanned_ == "\"tool_name\"") key_ = Key::kName;
      if (scanned_ == "\"id\"" || scanned_ == "\"tool_call_id\"") key_ = Key::kId;
      if (scanned_ == "\"arguments\"" || scanned_ == "\"parameters\"") key_ = Key::kArguments;
      if (scanned_ == "\"function\"") key_ = Key::kFunction;
      state_ = State::kColon;
      return ReadStep::kMore;
    }
    case State::kText:
      return PushText(c);
    case State::kSkipped:
      return PushSkipped(c);
    case State::kArguments:
      return PushArguments(c);
    default:
      break;
  }
  if (IsJsonSpace(c)) return ReadStep::kMore;
  switch (state_) {
    case State::kStart:
      if (c == '{') return BeginCall();
      if (c != '[') return ReadStep::kBad;
      in_list_ = true;
      state_ = State::kItem;
      return ReadStep::kMore;
    case State::kItem:
      return c == '{' ? BeginCall() : ReadStep::kBad;
    case State::kAfterItem:
      if (c == ']') return ReadStep::kEnd;
      if (c != ',') return ReadStep::kBad;
      state_ = State::kItem;
      return ReadStep::kMore;
    case State::kKeyOrEnd:
    case State::kKey:
      if (c == '}' && state_ == State::kKeyOrEnd) return EndObject();
      if (c != '"') return ReadStep::kBad;
      scanner_.Reset();
      scanned_.clear();
      state_ = State::kKeyText;
      return Push(c);
    case State::kColon:
      if (c != ':') return ReadStep::kBad;
      state_ = State::kValue;
      return ReadStep::kMore;
    case State::kValue:
      return BeginValue(c);
    default:  // kAfterValue
      if (c == '}') return EndObject();
      if (c != ',') return ReadStep::kBad;
      state_ = State::kKey;
      return ReadStep::kMore;
  }
}

void JsonCallReader::Finish(bool /*at_end*/) { context_.EndGivenOut(arguments_end_); }

}  // namespace tq

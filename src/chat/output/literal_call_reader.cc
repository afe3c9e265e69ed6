#include <cctype>
#include <optional>
#include <utility>

#include "chat/output/call_reader.h"

namespace tq {
namespace {

constexpr size_t kMaxNameBytes = 256;

bool IsNameByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

}  // namespace

LiteralCallReader::LiteralCallReader(const ReaderContext& context, bool in_list)
    : context_(context),
      state_(in_list ? State::kStart : State::kName),
      in_list_(in_list),
      scanner_(context.format.quote) {}

ReadStep LiteralCallReader::BeginCall(char open) {
  if (open != (is_gemma() ? '{' : '(')) return ReadStep::kBad;
  // Llama 3 calls its own tools as name.call(...).
  constexpr std::string_view kCall = ".call";
  if (!is_gemma() && !in_list_ && name_.ends_with(kCall)) {
    name_.resize(name_.size() - kCall.size());
  }
  if (!context_.Begin(name_, "")) return ReadStep::kBad;
  keys_.clear();
  num_positional_ = 0;
  scanner_.Reset();
  if (is_gemma()) {
    state_ = State::kObject;
    return Push(open);
  }
  state_ = State::kArgument;
  return ReadStep::kMore;
}

bool LiteralCallReader::StartKey(const std::string& key) {
  if (!keys_.insert(key).second) return false;
  context_.sink.Arguments(keys_.size() == 1 ? "{" : ", ");
  context_.sink.Arguments(JsonString(key) + ": ");
  return true;
}

ReadStep LiteralCallReader::EndCall() {
  if (!is_gemma()) context_.sink.Arguments(keys_.empty() ? "{}" : "}");
  context_.sink.Certain();
  context_.sink.End(true);
  state_ = State::kAfterItem;
  return in_list_ ? ReadStep::kMore : ReadStep::kEnd;
}

ReadStep LiteralCallReader::EndArgument(char c) {
  if (c == ')') return EndCall();
  if (c != ',') return ReadStep::kBad;
  state_ = State::kArgument;
  return ReadStep::kMore;
}

// An argument without a name: that of the schema at its place.
ReadStep LiteralCallReader::BeginPositional(char c) {
  const std::optional<std::string> key = context_.types.KeyAt(name_, num_positional_);
  if (!key || !StartKey(*key)) return ReadStep::kBad;
  ++num_positional_;
  scanner_.Reset();
  state_ = State::kValue;
  return PushValue(c);
}

ReadStep LiteralCallReader::PushKey(char c) {
  if (IsNameByte(c)) {
    if (key_.size() >= kMaxNameBytes) return ReadStep::kBad;
    key_ += c;
    return ReadStep::kMore;
  }
  if (IsJsonSpace(c)) return ReadStep::kMore;
  if (c == '=') {
    if (!StartKey(key_)) return ReadStep::kBad;
    scanner_.Reset();
    state_ = State::kValue;
    return ReadStep::kMore;
  }
  // True, None, 5.
  const std::string json = PythonWordJson(key_);
  const std::optional<std::string> key = context_.types.KeyAt(name_, num_positional_);
  if (json.empty() || !key || !StartKey(*key)) return ReadStep::kBad;
  ++num_positional_;
  context_.sink.Arguments(json);
  return EndArgument(c);
}

ReadStep LiteralCallReader::PushValue(char c) {
  json_.clear();
  const ScanStep step = scanner_.Push(c, json_);
  if (step == ScanStep::kBad) return ReadStep::kBad;
  if (!json_.empty()) {
    context_.sink.Arguments(json_);
    context_.sink.Certain();
  }
  if (step == ScanStep::kMore) return ReadStep::kMore;
  state_ = State::kAfterValue;
  return step == ScanStep::kEndBefore ? Push(c) : ReadStep::kMore;
}

ReadStep LiteralCallReader::Push(char c) {
  if (state_ == State::kValue) return PushValue(c);
  if (state_ == State::kObject) {
    json_.clear();
    const ScanStep step = scanner_.Push(c, json_);
    if (step == ScanStep::kBad) return ReadStep::kBad;
    context_.sink.Arguments(json_);
    if (scanner_.has_inner_value()) context_.sink.Certain();
    return step == ScanStep::kEnd ? EndCall() : ReadStep::kMore;
  }
  if (state_ == State::kKey) return PushKey(c);
  if (state_ == State::kName && IsNameByte(c)) {
    if (name_.size() >= kMaxNameBytes) return ReadStep::kBad;
    name_ += c;
    return ReadStep::kMore;
  }
  if (IsJsonSpace(c)) return ReadStep::kMore;
  switch (state_) {
    case State::kStart:
      state_ = State::kItem;
      return c == '[' ? ReadStep::kMore : ReadStep::kBad;
    case State::kItem:
      name_.clear();
      state_ = State::kName;
      return IsNameByte(c) ? Push(c) : ReadStep::kBad;
    case State::kName:
      return BeginCall(c);
    case State::kArgument:
      if (c == ')') return EndCall();
      if (!IsNameByte(c)) return BeginPositional(c);
      key_.assign(1, c);
      state_ = State::kKey;
      return ReadStep::kMore;
    case State::kAfterValue:
      return EndArgument(c);
    default:  // kAfterItem
      if (c == ']') return ReadStep::kEnd;
      if (c != ',') return ReadStep::kBad;
      state_ = State::kItem;
      return ReadStep::kMore;
  }
}

void LiteralCallReader::Finish(bool /*at_end*/) { context_.EndGivenOut(false); }

}  // namespace tq

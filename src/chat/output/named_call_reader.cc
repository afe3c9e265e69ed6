#include <algorithm>
#include <optional>
#include <utility>

#include "chat/output/call_reader.h"

namespace tq {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxKeyBytes = 1024;
constexpr size_t kMaxAttributesBytes = 256;

// Marks of a name that ends with what follows it.
enum NameMark { kNameClose, kIdOpen, kParamOpen, kRegionClose };
// Marks between arguments.
enum ParamMark { kNextParam, kCallClose, kRegionCloseInParams };

bool EndsName(char c) {
  return IsJsonSpace(c) || std::string_view("<>[](){}\"'`,;|").find(c) != std::string_view::npos;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return text;
}

bool BeginsWordNull(std::string_view text) {
  constexpr std::string_view kNull = "null";
  constexpr size_t kMaxBytes = 32;
  if (text.size() > kMaxBytes) return false;
  text = Trim(text);
  return text.size() <= kNull.size() &&
         std::equal(text.begin(), text.end(), kNull.begin(),
                    [](char a, char b) { return a == b || (a | 0x20) == b; });
}

}  // namespace

NamedCallReader::NamedCallReader(const ReaderContext& context) : context_(context) {
  Enter(State::kName);
}

void NamedCallReader::Enter(State state) {
  const ToolFormat& format = context_.format;
  state_ = state;
  text_.clear();
  switch (state) {
    case State::kName:
      matcher_ =
          EndsAnywhere()
              ? MarkMatcher({format.name_close, format.id_open, format.param_open, format.close})
              : MarkMatcher({format.name_close});
      break;
    case State::kId:
      matcher_ = MarkMatcher({format.name_close});
      break;
    case State::kNameAttributes:
    case State::kKeyAttributes:
      matcher_ = MarkMatcher({format.attributes_close});
      break;
    case State::kParams:
      matcher_ = MarkMatcher({format.param_open, format.call_close, format.close});
      break;
    case State::kKey:
      matcher_ = MarkMatcher({format.key_close});
      break;
    case State::kBeforeValue:
      matcher_ = MarkMatcher({format.value_open});
      break;
    case State::kValue:
      is_first_byte_ = true;
      is_streamed_ = holds_newline_ = false;
      matcher_ = MarkMatcher({format.value_close});
      break;
    case State::kPlain:
      matcher_ = MarkMatcher({format.close});
      break;
    default:
      break;
  }
}

void NamedCallReader::StartArguments(std::string name) {
  name_ = std::move(name);
  may_lack_arguments_ = true;
  Enter(State::kBeforeArguments);
}

// Kimi's names are "functions.NAME:INDEX", which also is the id.
bool NamedCallReader::SetName() {
  if (context_.format.syntax == ToolSyntax::kKimi) {
    id_ = name_;
    constexpr std::string_view kSpace = "functions.";
    if (name_.starts_with(kSpace)) name_.erase(0, kSpace.size());
    const size_t colon = name_.rfind(':');
    if (colon != std::string::npos && colon + 1 < name_.size() &&
        name_.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
      name_.resize(colon);
    }
  }
  return context_.Begin(name_, id_);
}

ReadStep NamedCallReader::EndName(int mark) {
  const ToolFormat& format = context_.format;
  name_ = Trim(text_);
  if (name_.empty()) return ReadStep::kBad;
  if (mark == kIdOpen) {
    Enter(State::kId);
  } else if (mark == kParamOpen) {
    if (!SetName()) return ReadStep::kBad;
    Enter(State::kKey);
  } else if (mark == kRegionClose) {
    if (!SetName()) return ReadStep::kBad;
    return EndCall(ReadStep::kClosed);
  } else if (format.param_open.empty()) {
    Enter(State::kBeforeArguments);
  } else {
    if (!SetName()) return ReadStep::kBad;
    Enter(format.attributes_close.empty() ? State::kParams : State::kNameAttributes);
  }
  return ReadStep::kMore;
}

ReadStep NamedCallReader::PushName(char c) {
  released_.clear();
  const int mark = matcher_.Push(c, released_);
  for (const char byte : released_) {
    const ReadStep step = TakeNameByte(byte);
    if (step != ReadStep::kMore) return step;
  }
  return mark == MarkMatcher::kNone ? ReadStep::kMore : EndName(mark);
}

ReadStep NamedCallReader::TakeNameByte(char c) {
  if (text_.size() >= kMaxNameBytes) return ReadStep::kBad;
  const ToolFormat& format = context_.format;
  const bool has_name = !Trim(text_).empty();
  // Where no mark ends a name, white space or arguments do.
  const bool is_over = has_name && IsJsonSpace(text_.back()) && EndsAnywhere();
  if (IsJsonSpace(c) || (!EndsName(c) && !is_over)) {
    text_ += c;
    return ReadStep::kMore;
  }
  if (!has_name || !EndsAnywhere()) return ReadStep::kBad;
  name_ = Trim(text_);
  if (c == '{') return BeginArguments(c);
  if (format.param_open.empty() || EndsName(c) || !SetName()) return ReadStep::kBad;
  Enter(State::kPlain);  // name key=value
  return PushPlain(c);
}

ReadStep NamedCallReader::PushBeforeArguments(char c) {
  if (IsJsonSpace(c)) return ReadStep::kMore;
  if (c == '{') return BeginArguments(c);
  if (may_lack_arguments_) {
    if (c != '<' || !SetName()) return ReadStep::kBad;
    return EndCall(ReadStep::kEndBefore);
  }
  // DeepSeek V3: the kind of the call came first; the name follows, then "```json".
  constexpr std::string_view kFence = "```json";
  if (text_.empty() && c != '`' && name_ == "function" && !is_fenced_ && !EndsName(c)) {
    Enter(State::kName);
    matcher_ = MarkMatcher({"\n"});
    is_fenced_ = true;
    return PushName(c);
  }
  if (text_.size() >= kFence.size() || kFence[text_.size()] != c) return ReadStep::kBad;
  text_ += c;
  return ReadStep::kMore;
}

ReadStep NamedCallReader::BeginArguments(char c) {
  if (!SetName()) return ReadStep::kBad;
  scanner_.Reset();
  state_ = State::kArguments;
  return PushArguments(c);
}

ReadStep NamedCallReader::PushArguments(char c) {
  released_.clear();
  const ScanStep step = scanner_.Push(c, released_);
  if (step == ScanStep::kBad) return ReadStep::kBad;
  context_.sink.Arguments(released_);
  arguments_end_ = step == ScanStep::kEnd;
  if (scanner_.has_inner_value() || arguments_end_) context_.sink.Certain();
  if (!arguments_end_) return ReadStep::kMore;
  const ToolFormat& format = context_.format;
  if (format.param_open.empty()) {
    context_.sink.End(true);
    return ReadStep::kEnd;
  }
  // In the place of tags: what closes the call follows.
  Enter(State::kParams);
  return ReadStep::kMore;
}

// Writes the end of arguments that came one by one, and ends the call.
ReadStep NamedCallReader::EndCall(ReadStep step) {
  if (!arguments_end_) context_.sink.Arguments(keys_.empty() ? "{}" : "}");
  arguments_end_ = true;
  context_.sink.Certain();
  context_.sink.End(true);
  return step;
}

ReadStep NamedCallReader::PushParams(char c) {
  const ToolFormat& format = context_.format;
  released_.clear();
  const int mark = matcher_.Push(c, released_);
  for (const char byte : released_) {
    if (IsJsonSpace(byte)) continue;
    const bool is_json = byte == '{' && keys_.empty() && !arguments_end_;
    if (!is_json) return ReadStep::kBad;
    scanner_.Reset();
    state_ = State::kArguments;
    return PushArguments(byte);
  }
  if (mark == MarkMatcher::kNone) return ReadStep::kMore;
  if (mark == kNextParam) {
    if (arguments_end_) return ReadStep::kBad;
    Enter(State::kKey);
    return ReadStep::kMore;
  }
  if (mark == kCallClose) return EndCall(ReadStep::kEnd);
  // The region ends. A call with an end of its own lacks it.
  if (!format.call_close.empty() && !context_.sink.open_is_certain()) return ReadStep::kBad;
  return EndCall(ReadStep::kClosed);
}

bool NamedCallReader::StartKey(std::string_view key) {
  if (!keys_.emplace(key).second) return false;
  context_.sink.Arguments(keys_.size() == 1 ? "{" : ", ");
  context_.sink.Arguments(JsonString(key));
  context_.sink.Arguments(": ");
  return true;
}

ReadStep NamedCallReader::EndKey() {
  const std::string key(Trim(text_));
  if (key.empty() || !StartKey(key)) return ReadStep::kBad;
  types_ = context_.types.TypeOf(name_, key);
  if (types_.empty() && context_.format.untyped_is_string) types_.string = true;
  if (!context_.format.attributes_close.empty()) {
    Enter(State::kKeyAttributes);
  } else {
    Enter(context_.format.value_open.empty() ? State::kValue : State::kBeforeValue);
  }
  return ReadStep::kMore;
}

ReadStep NamedCallReader::PushKey(char c) {
  if (text_.size() >= kMaxKeyBytes) return ReadStep::kBad;
  const int mark = matcher_.Push(c, text_);
  return mark == MarkMatcher::kNone ? ReadStep::kMore : EndKey();
}

// The rest of a tag: may say what a value is.
ReadStep NamedCallReader::PushAttributes(char c) {
  if (text_.size() >= kMaxAttributesBytes) return ReadStep::kBad;
  if (matcher_.Push(c, text_) == MarkMatcher::kNone) return ReadStep::kMore;
  if (state_ == State::kNameAttributes) {
    Enter(State::kParams);
    return ReadStep::kMore;
  }
  const auto says = [this](std::string_view word) { return text_.find(word) != std::string::npos; };
  if (says("string=\"true\"") || says("type=\"string\"")) {
    types_ = {};
    types_.string = true;
  } else if ((says("string=\"false\"") || says("type=\"")) && types_.only_string()) {
    types_ = {};
  }
  Enter(State::kValue);
  return ReadStep::kMore;
}

ReadStep NamedCallReader::PushBeforeValue(char c) {
  released_.clear();
  const int mark = matcher_.Push(c, released_);
  if (!Trim(released_).empty()) return ReadStep::kBad;
  if (mark != MarkMatcher::kNone) Enter(State::kValue);
  return ReadStep::kMore;
}

// A value that can only be a string goes out as it comes, but for the last line feed: it belongs to
// the tags, like the first one.
void NamedCallReader::TakeValueByte(char c) {
  const bool is_first = is_first_byte_;
  is_first_byte_ = false;
  if (is_first && c == '\n') return;
  if (holds_newline_) text_ += '\n';
  holds_newline_ = c == '\n';
  if (!holds_newline_) text_ += c;
  if (!types_.only_string()) return;
  const bool may_be_null = context_.format.null_is_word || types_.null;
  if (!is_streamed_ && may_be_null && BeginsWordNull(text_)) return;
  if (!is_streamed_) {
    is_streamed_ = true;
    context_.sink.Arguments("\"");
    context_.sink.Certain();
  }
  std::string escaped;
  AppendEscaped(text_, escaped);
  context_.sink.Arguments(escaped);
  text_.clear();
}

ReadStep NamedCallReader::EndValue() {
  if (is_streamed_) {
    context_.sink.Arguments("\"");
  } else {
    const ToolFormat& format = context_.format;
    const std::optional<std::string> json =
        TypedJson(text_, types_, {.untyped_is_string = false, .null_is_word = format.null_is_word});
    if (!json) return ReadStep::kBad;
    context_.sink.Arguments(*json);
    context_.sink.Certain();
  }
  Enter(State::kParams);
  return ReadStep::kMore;
}

ReadStep NamedCallReader::PushValue(char c) {
  released_.clear();
  const int mark = matcher_.Push(c, released_);
  for (const char byte : released_) TakeValueByte(byte);
  return mark == MarkMatcher::kNone ? ReadStep::kMore : EndValue();
}

ReadStep NamedCallReader::PushPlain(char c) {
  // A word without '=' is prose.
  if (IsJsonSpace(c) || c == '<') {
    if (plain_word_ == PlainWord::kKey) return ReadStep::kBad;
    plain_word_ = PlainWord::kNone;
  } else if (c == '=') {
    if (plain_word_ == PlainWord::kNone) return ReadStep::kBad;
    plain_word_ = PlainWord::kValue;
  } else if (plain_word_ == PlainWord::kNone) {
    plain_word_ = PlainWord::kKey;
  }
  if (matcher_.Push(c, text_) == MarkMatcher::kNone) return ReadStep::kMore;
  std::string_view rest = Trim(text_);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(" \t\r\n"), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) return ReadStep::kBad;
    const std::string_view key = pair.substr(0, equals);
    const std::optional<std::string> json =
        TypedJson(pair.substr(equals + 1), context_.types.TypeOf(name_, key),
                  {.untyped_is_string = false, .null_is_word = false});
    if (!json || !StartKey(key)) return ReadStep::kBad;
    context_.sink.Arguments(*json);
    rest = Trim(rest.substr(end));
  }
  return EndCall(ReadStep::kClosed);
}

ReadStep NamedCallReader::Push(char c) {
  switch (state_) {
    case State::kName:
      return PushName(c);
    case State::kId:
      if (text_.size() >= kMaxNameBytes) return ReadStep::kBad;
      if (matcher_.Push(c, text_) == MarkMatcher::kNone) return ReadStep::kMore;
      id_ = Trim(text_);
      Enter(State::kBeforeArguments);
      return ReadStep::kMore;
    case State::kBeforeArguments:
      return PushBeforeArguments(c);
    case State::kArguments:
      return PushArguments(c);
    case State::kNameAttributes:
    case State::kKeyAttributes:
      return PushAttributes(c);
    case State::kParams:
      return PushParams(c);
    case State::kKey:
      return PushKey(c);
    case State::kBeforeValue:
      return PushBeforeValue(c);
    case State::kValue:
      return PushValue(c);
    default:
      return PushPlain(c);
  }
}

void NamedCallReader::Finish(bool at_end) {
  if (at_end && may_lack_arguments_ && state_ == State::kBeforeArguments && SetName()) {
    EndCall(ReadStep::kEnd);
    context_.sink.ReleaseAll();
  }
  context_.EndGivenOut(arguments_end_);
}

}  // namespace tq

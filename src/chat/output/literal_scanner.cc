#include "chat/output/literal_scanner.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tq {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxWordBytes = 4096;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// "\uXXXX" of a code point, as a pair where it needs one.
void AppendUnicodeEscape(uint32_t code, std::string& out) {
  if (code < 0x10000) {
    out += fmt::format("\\u{:04x}", code);
    return;
  }
  code -= 0x10000;
  out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
}

}  // namespace

std::string PythonWordJson(std::string_view word) {
  if (word == "True" || word == "true") return "true";
  if (word == "False" || word == "false") return "false";
  if (word == "None" || word == "null") return "null";
  std::string number(word);
  std::erase(number, '_');
  if (number.starts_with('+')) number.erase(0, 1);
  const size_t sign = number.starts_with('-') ? 1 : 0;
  if (number.compare(sign, 2, "0x") == 0) {
    uint64_t value = 0;
    const char* end = number.data() + number.size();
    const auto [at, error] = std::from_chars(number.data() + sign + 2, end, value, 16);
    if (error != std::errc() || at != end) return "";
    return (sign != 0 ? "-" : "") + std::to_string(value);
  }
  if (number.compare(sign, 1, ".") == 0) number.insert(sign, "0");
  if (const size_t dot = number.find('.');
      dot != std::string::npos && (dot + 1 == number.size() || !IsDigit(number[dot + 1]))) {
    number.insert(dot + 1, "0");
  }
  std::string json;
  const bool is_number = number.size() > sign && IsDigit(number[sign]);
  return is_number && IsJsonValue(number, &json) ? json : "";
}

LiteralScanner::LiteralScanner(std::string_view gemma_quote)
    : gemma_quote_(gemma_quote), string_end_({gemma_quote}) {}

void LiteralScanner::Reset() { *this = LiteralScanner(gemma_quote_); }

// The comma in front of it, and what shows that the brackets hold something.
void LiteralScanner::BeginItem(std::string& out) {
  if (nested_.empty()) return;
  Level& level = nested_.back();
  const bool is_value_of_key = level.open == '{' && !level.expects_key;
  if (!is_value_of_key) {
    if (!level.is_empty) out += ", ";
    level.is_empty = false;
  }
  if (!level.expects_key) has_inner_value_ = true;
}

ScanStep LiteralScanner::EndValue() {
  if (nested_.empty()) return ScanStep::kEnd;
  Level& level = nested_.back();
  if (level.expects_key) {
    level.expects_key = false;
    state_ = State::kColon;
  } else {
    state_ = State::kAfter;
  }
  return ScanStep::kMore;
}

ScanStep LiteralScanner::BeginValue(char c, std::string& out) {
  if (IsJsonSpace(c)) return ScanStep::kMore;
  if (c == '}' || c == ']' || c == ')') return Close(c, out);  // nothing, or a comma before it
  if (c == '{' || c == '[' || (c == '(' && !is_gemma())) {
    if (expects_key() || nested_.size() >= kMaxDepth) return ScanStep::kBad;
    BeginItem(out);
    nested_.push_back({c, true, c == '{'});
    out += c == '{' ? '{' : '[';
    return ScanStep::kMore;
  }
  if (is_gemma() && c == gemma_quote_[0]) {
    mark_read_ = 1;
    state_ = State::kMark;
    return ScanStep::kMore;
  }
  if (!is_gemma() && (c == '"' || c == '\'')) {
    BeginItem(out);
    quote_ = c;
    state_ = State::kQuote;
    out += '"';
    return ScanStep::kMore;
  }
  if (c == ',' || c == ':' || c == '=' || c == '"' || c == '\'') return ScanStep::kBad;
  word_.assign(1, c);
  state_ = State::kWord;
  return ScanStep::kMore;
}

ScanStep LiteralScanner::EndWord(char c, std::string& out) {
  while (!word_.empty() && IsJsonSpace(word_.back())) word_.pop_back();
  std::string json;
  if (expects_key()) {
    const std::string number = is_gemma() ? "" : PythonWordJson(word_);
    if (!is_gemma() && number.empty()) return ScanStep::kBad;
    json = JsonString(word_);
  } else {
    json = PythonWordJson(word_);
    if (json.empty()) {
      if (!is_gemma()) return ScanStep::kBad;
      json = JsonString(word_);
    }
  }
  BeginItem(out);
  out += json;
  if (EndValue() == ScanStep::kEnd) return ScanStep::kEndBefore;
  return Push(c, out);
}

ScanStep LiteralScanner::PushWord(char c, std::string& out) {
  const bool ends = c == ',' || c == ']' || c == '}' || (c == ')' && !is_gemma()) ||
                    (c == ':' && expects_key()) || (IsJsonSpace(c) && !is_gemma());
  if (ends) return EndWord(c, out);
  if (word_.size() >= kMaxWordBytes) return ScanStep::kBad;
  if (!is_gemma() && (c == '"' || c == '\'' || c == '(' || c == '[' || c == '{')) {
    return ScanStep::kBad;
  }
  word_ += c;
  return ScanStep::kMore;
}

ScanStep LiteralScanner::EndString(std::string& out) {
  pairs_.Flush(out);
  out += '"';
  is_triple_ = false;
  quotes_ = 0;
  return EndValue();
}

ScanStep LiteralScanner::PushEscape(char c, std::string& out) {
  if (state_ == State::kHex) {
    const size_t wanted = hex_kind_ == 'x' ? 2 : hex_kind_ == 'u' ? 4 : 8;
    if (!IsHexDigit(c)) return ScanStep::kBad;
    hex_ += c;
    if (hex_.size() < wanted) return ScanStep::kMore;
    uint32_t code = 0;
    std::from_chars(hex_.data(), hex_.data() + hex_.size(), code, 16);
    if (code > 0x10FFFF) return ScanStep::kBad;
    std::string escape;
    AppendUnicodeEscape(code, escape);
    pairs_.Add(code, escape, out);
    state_ = State::kString;
    return ScanStep::kMore;
  }
  state_ = State::kString;
  constexpr std::string_view kNames = "nrtbf\\'\"0av\n";
  constexpr std::string_view kValues = {"\n\r\t\b\f\\'\"\0\a\v", 11};
  if (c == 'x' || c == 'u' || c == 'U') {
    hex_kind_ = c;
    hex_.clear();
    state_ = State::kHex;
  } else if (c == '\n') {
    // The line goes on.
  } else {
    pairs_.Flush(out);
    if (const size_t at = kNames.find(c); at != std::string_view::npos) {
      AppendEscaped(kValues.substr(at, 1), out);
    } else {
      out += "\\\\";
      AppendEscaped({&c, 1}, out);
    }
  }
  return ScanStep::kMore;
}

ScanStep LiteralScanner::PushString(char c, std::string& out) {
  if (is_gemma()) {
    std::string released;
    const bool ends = string_end_.Push(c, released) != MarkMatcher::kNone;
    AppendEscaped(released, out);
    return ends ? EndString(out) : ScanStep::kMore;
  }
  if (c == quote_) {
    if (!is_triple_ || ++quotes_ == 3) return EndString(out);
    return ScanStep::kMore;
  }
  if (c != '\\' || quotes_ > 0) pairs_.Flush(out);
  for (; quotes_ > 0; --quotes_) AppendEscaped({&quote_, 1}, out);
  if (c == '\\') {
    state_ = State::kEscape;
    return ScanStep::kMore;
  }
  AppendEscaped({&c, 1}, out);
  return ScanStep::kMore;
}

ScanStep LiteralScanner::Close(char c, std::string& out) {
  const char open = c == '}' ? '{' : c == ']' ? '[' : '(';
  if (nested_.empty() || nested_.back().open != open) return ScanStep::kBad;
  const bool lacks_value = open == '{' && state_ == State::kValue && !nested_.back().expects_key;
  if (lacks_value) return ScanStep::kBad;
  nested_.pop_back();
  out += c == '}' ? '}' : ']';
  return EndValue();
}

ScanStep LiteralScanner::PushAfter(char c, std::string& out) {
  if (IsJsonSpace(c)) return ScanStep::kMore;
  if (state_ == State::kColon) {
    if (c != ':') return ScanStep::kBad;
    out += ": ";
    state_ = State::kValue;
    return ScanStep::kMore;
  }
  if (c != ',') return Close(c, out);
  nested_.back().expects_key = nested_.back().open == '{';
  state_ = State::kValue;
  return ScanStep::kMore;
}

ScanStep LiteralScanner::Push(char c, std::string& out) {
  switch (state_) {
    case State::kWord:
      return PushWord(c, out);
    case State::kMark:
      if (c != gemma_quote_[mark_read_]) return ScanStep::kBad;
      if (++mark_read_ < gemma_quote_.size()) return ScanStep::kMore;
      BeginItem(out);
      out += '"';
      state_ = State::kString;
      return ScanStep::kMore;
    case State::kQuote:
      state_ = c == quote_ ? State::kQuoteTwo : State::kString;
      return c == quote_ ? ScanStep::kMore : PushString(c, out);
    case State::kQuoteTwo:
      if (c == quote_) {
        is_triple_ = true;
        state_ = State::kString;
        return ScanStep::kMore;
      }
      // An empty string, and what follows it.
      if (EndString(out) == ScanStep::kEnd) return ScanStep::kEndBefore;
      return Push(c, out);
    case State::kString:
      return PushString(c, out);
    case State::kEscape:
    case State::kHex:
      return PushEscape(c, out);
    case State::kColon:
    case State::kAfter:
      return PushAfter(c, out);
    default:
      return BeginValue(c, out);
  }
}

bool IsLiteral(std::string_view text, std::string* json) {
  return IsWholeValue(LiteralScanner(), text, json);
}

}  // namespace tq

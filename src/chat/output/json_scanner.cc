#include "chat/output/json_scanner.h"

#include <charconv>

#include <fmt/format.h>

namespace tq {
namespace {

constexpr size_t kMaxDepth = 200;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

void AppendEscaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  AppendEscaped(text, out);
  out += '"';
  return out;
}

void EscapedPairs::Flush(std::string& out) {
  if (high_.empty()) return;
  out += "\\ufffd";
  high_.clear();
}

void EscapedPairs::Add(uint32_t code, std::string_view escape, std::string& out) {
  const bool is_low = code >= 0xDC00 && code < 0xE000;
  if (is_low && !high_.empty()) {
    out += high_;
    out += escape;
    high_.clear();
    return;
  }
  Flush(out);
  if (code >= 0xD800 && code < 0xDC00) {
    high_ = escape;
  } else {
    out += is_low ? "\\ufffd" : escape;
  }
}

void JsonScanner::Reset() { *this = JsonScanner(); }

ScanStep JsonScanner::Take(char c, State next, std::string& out) {
  out += c;
  state_ = next;
  return ScanStep::kMore;
}

ScanStep JsonScanner::EndValue() {
  if (nested_.empty()) return ScanStep::kEnd;
  state_ = State::kAfter;
  return ScanStep::kMore;
}

ScanStep JsonScanner::BeginValue(char c, std::string& out) {
  const bool inner = !nested_.empty();
  switch (c) {
    case '{':
    case '[':
      if (nested_.size() >= kMaxDepth) return ScanStep::kBad;
      nested_.push_back(c);
      has_inner_value_ = has_inner_value_ || inner;
      return Take(c, c == '{' ? State::kFirstKey : State::kFirstValue, out);
    case '"':
      is_key_ = false;
      state_ = State::kString;
      break;
    case 't':
      word_ = "rue";
      state_ = State::kWord;
      break;
    case 'f':
      word_ = "alse";
      state_ = State::kWord;
      break;
    case 'n':
      word_ = "ull";
      state_ = State::kWord;
      break;
    case '-':
      state_ = State::kMinus;
      break;
    case '0':
      state_ = State::kZero;
      break;
    default:
      if (!IsDigit(c)) return ScanStep::kBad;
      state_ = State::kInteger;
  }
  has_inner_value_ = has_inner_value_ || inner;
  return Take(c, state_, out);
}

ScanStep JsonScanner::Close(char c, std::string& out) {
  const char open = c == '}' ? '{' : '[';
  if (nested_.empty() || nested_.back() != open) return ScanStep::kBad;
  nested_.pop_back();
  out += c;
  return EndValue();
}

void JsonScanner::EndHex(std::string& out) {
  uint32_t code = 0;
  std::from_chars(escape_.data() + 2, escape_.data() + escape_.size(), code, 16);
  pairs_.Add(code, escape_, out);
  state_ = State::kString;
}

ScanStep JsonScanner::PushString(char c, std::string& out) {
  if (state_ == State::kHex) {
    if (!IsHexDigit(c)) return ScanStep::kBad;
    escape_ += c;
    if (escape_.size() == 6) EndHex(out);
    return ScanStep::kMore;
  }
  if (state_ == State::kEscape) {
    escape_ += c;
    if (c == 'u') {
      state_ = State::kHex;
      return ScanStep::kMore;
    }
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) return ScanStep::kBad;
    pairs_.Flush(out);
    out += escape_;
    state_ = State::kString;
    return ScanStep::kMore;
  }
  if (c == '\\') {
    escape_ = c;
    state_ = State::kEscape;
    return ScanStep::kMore;
  }
  pairs_.Flush(out);
  if (c != '"') {
    if (static_cast<unsigned char>(c) < 0x20) {
      AppendEscaped({&c, 1}, out);
      return ScanStep::kMore;
    }
    return Take(c, State::kString, out);
  }
  out += c;
  if (!is_key_) return EndValue();
  state_ = State::kColon;
  return ScanStep::kMore;
}

ScanStep JsonScanner::PushNumber(char c, std::string& out) {
  const bool digit = IsDigit(c);
  switch (state_) {
    case State::kMinus:
      if (!digit) return ScanStep::kBad;
      return Take(c, c == '0' ? State::kZero : State::kInteger, out);
    case State::kDot:
      return digit ? Take(c, State::kFraction, out) : ScanStep::kBad;
    case State::kExponent:
      if (c == '+' || c == '-') return Take(c, State::kExponentSign, out);
      [[fallthrough]];
    case State::kExponentSign:
      return digit ? Take(c, State::kExponentDigits, out) : ScanStep::kBad;
    case State::kExponentDigits:
      if (digit) return Take(c, state_, out);
      break;
    default:  // kZero, kInteger, kFraction
      if (digit && state_ != State::kZero) return Take(c, state_, out);
      if (digit) return ScanStep::kBad;
      if (c == '.' && state_ != State::kFraction) return Take(c, State::kDot, out);
      if (c == 'e' || c == 'E') return Take(c, State::kExponent, out);
  }
  // The number is over.
  if (nested_.empty()) return ScanStep::kEndBefore;
  state_ = State::kAfter;
  return Push(c, out);
}

ScanStep JsonScanner::Push(char c, std::string& out) {
  switch (state_) {
    case State::kString:
    case State::kEscape:
    case State::kHex:
      return PushString(c, out);
    case State::kWord:
      if (word_.empty() || word_[0] != c) return ScanStep::kBad;
      word_.remove_prefix(1);
      out += c;
      return word_.empty() ? EndValue() : ScanStep::kMore;
    case State::kMinus:
    case State::kZero:
    case State::kInteger:
    case State::kDot:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigits:
      return PushNumber(c, out);
    default:
      break;
  }
  if (IsJsonSpace(c)) {
    if (!nested_.empty()) out += c;
    return ScanStep::kMore;
  }
  switch (state_) {
    case State::kFirstKey:
    case State::kKey:
      if (c == '}' && state_ == State::kFirstKey) return Close(c, out);
      if (c != '"') return ScanStep::kBad;
      is_key_ = true;
      return Take(c, State::kString, out);
    case State::kColon:
      return c == ':' ? Take(c, State::kValue, out) : ScanStep::kBad;
    case State::kAfter:
      if (c == '}' || c == ']') return Close(c, out);
      if (c != ',') return ScanStep::kBad;
      return Take(c, nested_.back() == '{' ? State::kKey : State::kValue, out);
    case State::kFirstValue:
      if (c == ']') return Close(c, out);
      return BeginValue(c, out);
    default:
      return BeginValue(c, out);
  }
}

bool IsJsonValue(std::string_view text, std::string* json) {
  return IsWholeValue(JsonScanner(), text, json);
}

}  // namespace tq

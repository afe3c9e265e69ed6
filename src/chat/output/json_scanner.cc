#include "chat/output/json_scanner.h"

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

ScanStep JsonScanner::PushString(char c, std::string& out) {
  if (state_ == State::kHex) {
    if (!IsHexDigit(c)) return ScanStep::kBad;
    return Take(c, --hex_digits_ == 0 ? State::kString : State::kHex, out);
  }
  if (state_ == State::kEscape) {
    if (c == 'u') {
      hex_digits_ = 4;
      return Take(c, State::kHex, out);
    }
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) return ScanStep::kBad;
    return Take(c, State::kString, out);
  }
  if (c == '\\') return Take(c, State::kEscape, out);
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

#include "chat/template/lexer.h"

#include <algorithm>

#include <fmt/format.h>

#include "chat/template/numbers.h"
#include "chat/template/text.h"
#include "chat/template/unescape.h"

namespace tq::jinja {
namespace {

constexpr size_t kNone = std::string_view::npos;

// All line ends become \n; one at the very end is dropped.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), text_(source_) {}

  Result<std::vector<Token>> Run() {
    while (pos_ < text_.size()) TQ_RETURN_IF_ERROR(LexData());
    Push(TokenType::kEnd, pos_);
    return std::move(tokens_);
  }

 private:
  struct Opening {
    size_t at = kNone;  // of the first brace
    size_t end = 0;     // behind the tag's opening (and the strip sign)
    char kind = 0;      // '%', '{', '#', 'r' (a raw block)
    char sign = 0;      // '-', '+' or 0
  };

  Status Fail(size_t at, std::string_view what) {
    return Corrupt(fmt::format("chat template line {}: {}", LineAt(at), what));
  }

  // Offsets only grow, so lines are counted once.
  int LineAt(size_t at) {
    if (at < line_pos_) {
      line_pos_ = 0;
      line_ = 1;
    }
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<int64_t>(line_pos_),
                                         text_.begin() + static_cast<int64_t>(at), '\n'));
    line_pos_ = at;
    return line_;
  }

  Token& Push(TokenType type, size_t at, std::string text = {}) {
    Token token;
    token.type = type;
    token.line = LineAt(at);
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  bool At(size_t pos, std::string_view what) const {
    return text_.substr(std::min(pos, text_.size()), what.size()) == what;
  }

  size_t SkipSpace(size_t pos) const {
    while (pos < text_.size()) {
      size_t next = pos;
      if (!IsSpace(NextCodePoint(text_, &next))) break;
      pos = next;
    }
    return pos;
  }

  // The end of "%}" with its strip sign, behind what it swallows; kNone when there is none at pos.
  size_t BlockEnd(size_t pos) const {
    if (At(pos, "+%}")) return pos + 3;
    if (At(pos, "-%}")) return SkipSpace(pos + 3);
    if (!At(pos, "%}")) return kNone;
    return At(pos + 2, "\n") ? pos + 3 : pos + 2;
  }

  // Behind `{% name %}` whose opening brace is at pos; kNone when something else stands there.
  size_t NamedTagEnd(size_t pos, std::string_view name, bool trims, char* sign) const {
    if (!At(pos, "{%")) return kNone;
    pos += 2;
    *sign = 0;
    if (At(pos, "-") || At(pos, "+")) *sign = text_[pos++];
    pos = SkipSpace(pos);
    if (!At(pos, name)) return kNone;
    pos = SkipSpace(pos + name.size());
    if (trims) return BlockEnd(pos);
    if (At(pos, "-%}")) return SkipSpace(pos + 3);
    return At(pos, "%}") ? pos + 2 : kNone;
  }

  Opening FindOpening() const {
    Opening opening;
    for (size_t at = text_.find('{', pos_); at != kNone; at = text_.find('{', at + 1)) {
      const char kind = at + 1 < text_.size() ? text_[at + 1] : '\0';
      if (kind != '%' && kind != '{' && kind != '#') continue;
      opening.at = at;
      opening.kind = kind;
      if (kind == '%') {
        const size_t raw_end = NamedTagEnd(at, "raw", /*trims=*/false, &opening.sign);
        if (raw_end != kNone) {
          opening.kind = 'r';
          opening.end = raw_end;
          return opening;
        }
      }
      opening.sign = 0;
      opening.end = at + 2;
      if (At(opening.end, "-") || At(opening.end, "+")) opening.sign = text_[opening.end++];
      return opening;
    }
    return opening;
  }

  // Text in front of a tag, stripped as the tag's sign says.
  void PushData(size_t begin, size_t end, char sign, bool is_variable) {
    std::string_view data = text_.substr(begin, end - begin);
    if (sign == '-') {
      data = Strip(data, Side::kRight, std::nullopt);
    } else if (sign != '+' && !is_variable) {
      const size_t newline = data.rfind('\n');
      const size_t line_begin = newline == kNone ? 0 : newline + 1;
      if (line_begin > 0 || line_starting_) {
        if (Strip(data.substr(line_begin), Side::kBoth, std::nullopt).empty()) {
          data = data.substr(0, line_begin);
        }
      }
    }
    if (!data.empty()) Push(TokenType::kData, begin, std::string(data));
  }

  void Advance(size_t pos) {
    line_starting_ = pos > 0 && text_[pos - 1] == '\n';
    pos_ = pos;
  }

  Status LexData() {
    const Opening opening = FindOpening();
    if (opening.at == kNone) {
      Push(TokenType::kData, pos_, std::string(text_.substr(pos_)));
      pos_ = text_.size();
      return Status::Ok();
    }
    PushData(pos_, opening.at, opening.sign, opening.kind == '{');
    Advance(opening.end);
    switch (opening.kind) {
      case 'r':
        return LexRaw(opening.at);
      case '#':
        return LexComment(opening.at);
      default:
        return LexTag(opening);
    }
  }

  Status LexRaw(size_t begin) {
    for (size_t at = text_.find("{%", pos_); at != kNone; at = text_.find("{%", at + 1)) {
      char sign = 0;
      const size_t end = NamedTagEnd(at, "endraw", /*trims=*/true, &sign);
      if (end == kNone) continue;
      PushData(pos_, at, sign, /*is_variable=*/false);
      Advance(end);
      return Status::Ok();
    }
    return Fail(begin, "the raw block is never closed with endraw");
  }

  Status LexComment(size_t begin) {
    const size_t close = text_.find("#}", pos_);
    if (close == kNone) return Fail(begin, "the comment is never closed with #}");
    const char before = close > pos_ ? text_[close - 1] : '\0';
    size_t end = close + 2;
    if (before == '-') {
      end = SkipSpace(end);
    } else if (before != '+' && At(end, "\n")) {
      ++end;
    }
    Advance(end);
    return Status::Ok();
  }

  Status LexTag(const Opening& opening) {
    const bool is_block = opening.kind == '%';
    Push(is_block ? TokenType::kBlockBegin : TokenType::kVariableBegin, opening.at);
    std::string open_brackets;  // the closing ones that are due
    while (true) {
      if (open_brackets.empty()) {
        size_t end = kNone;
        if (is_block) {
          end = BlockEnd(pos_);
        } else if (At(pos_, "-}}")) {
          end = SkipSpace(pos_ + 3);
        } else if (At(pos_, "}}")) {
          end = pos_ + 2;
        }
        if (end != kNone) {
          Push(is_block ? TokenType::kBlockEnd : TokenType::kVariableEnd, pos_);
          Advance(end);
          return Status::Ok();
        }
      }
      if (pos_ >= text_.size()) {
        return Fail(opening.at, is_block ? "the tag is never closed with %}"
                                         : "the expression is never closed with }}");
      }
      const size_t after_space = SkipSpace(pos_);
      if (after_space > pos_) {
        Advance(after_space);
        continue;
      }
      TQ_RETURN_IF_ERROR(LexToken(&open_brackets));
    }
  }

  Status LexToken(std::string* open_brackets) {
    const char c = text_[pos_];
    if (IsDigitByte(c)) return LexNumber();
    if (c == '\'' || c == '"') return LexString(c);
    size_t end = pos_;
    while (end < text_.size()) {
      size_t next = end;
      const char32_t code_point = NextCodePoint(text_, &next);
      if (!IsIdentifierPart(code_point) && !IsAlnum(code_point)) break;
      end = next;
    }
    if (end > pos_) {
      size_t first = pos_;
      if (!IsIdentifierStart(NextCodePoint(text_, &first))) {
        return Fail(pos_, "a name starts with a character that names may not start with");
      }
      Push(TokenType::kName, pos_, std::string(text_.substr(pos_, end - pos_)));
      pos_ = end;
      return Status::Ok();
    }
    return LexOperator(open_brackets);
  }

  Status LexOperator(std::string* open_brackets) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!At(pos_, op)) continue;
      const char c = op[0];
      if (c == '(' || c == '[' || c == '{') {
        *open_brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if (c == ')' || c == ']' || c == '}') {
        if (open_brackets->empty() || open_brackets->back() != c) {
          return Fail(pos_, open_brackets->empty() ? fmt::format("unexpected '{}'", c)
                                                   : fmt::format("unexpected '{}', expected '{}'",
                                                                 c, open_brackets->back()));
        }
        open_brackets->pop_back();
      }
      Push(TokenType::kOperator, pos_, std::string(op));
      pos_ += op.size();
      return Status::Ok();
    }
    size_t next = pos_;
    NextCodePoint(text_, &next);
    return Fail(pos_, fmt::format("unexpected character '{}'", text_.substr(pos_, next - pos_)));
  }

  // Behind digits with single underscores between them.
  size_t SkipDigits(size_t pos) const {
    while (pos < text_.size() && (IsDigitByte(text_[pos]) ||
                                  (text_[pos] == '_' && pos + 1 < text_.size() &&
                                   IsDigitByte(text_[pos + 1]) && IsDigitByte(text_[pos - 1])))) {
      ++pos;
    }
    return pos;
  }

  // The end of a float at pos_, kNone when the number is an integer.
  size_t FloatEnd() const {
    if (pos_ > 0 && text_[pos_ - 1] == '.') return kNone;  // x.1.2 is two subscripts
    size_t end = SkipDigits(pos_);
    bool is_float = false;
    if (At(end, ".") && end + 1 < text_.size() && IsDigitByte(text_[end + 1])) {
      end = SkipDigits(end + 1);
      is_float = true;
    }
    if (At(end, "e") || At(end, "E")) {
      const size_t digits = end + (At(end + 1, "+") || At(end + 1, "-") ? 2 : 1);
      if (digits < text_.size() && IsDigitByte(text_[digits])) {
        end = SkipDigits(digits);
        is_float = true;
      }
    }
    return is_float ? end : kNone;
  }

  size_t IntegerEnd() const {
    if (text_[pos_] != '0') return SkipDigits(pos_);
    const char letter = pos_ + 1 < text_.size() ? static_cast<char>(text_[pos_ + 1] | 0x20) : '\0';
    const std::string_view digits = letter == 'x'   ? "0123456789abcdefABCDEF"
                                    : letter == 'o' ? "01234567"
                                    : letter == 'b' ? "01"
                                                    : "";
    size_t end = pos_ + 2;
    while (end < text_.size()) {
      const size_t digit = text_[end] == '_' ? end + 1 : end;
      if (digit >= text_.size() || digits.find(text_[digit]) == kNone) break;
      end = digit + 1;
    }
    if (!digits.empty() && end > pos_ + 2) return end;
    end = pos_ + 1;
    while (At(end, "0") || At(end, "_0")) end += text_[end] == '_' ? 2 : 1;
    return end;
  }

  Status LexNumber() {
    const size_t float_end = FloatEnd();
    const size_t end = float_end != kNone ? float_end : IntegerEnd();
    const std::string spelling(text_.substr(pos_, end - pos_));
    if (float_end != kNone) {
      const std::optional<double> value = ParseFloat(spelling);
      if (!value) return Fail(pos_, fmt::format("malformed number {}", spelling));
      Push(TokenType::kFloat, pos_, spelling).real = *value;
    } else {
      int64_t value = 0;
      switch (ParseInt(spelling, 0, &value)) {
        case IntParse::kOk:
          break;
        case IntParse::kMalformed:
          return Fail(pos_, fmt::format("malformed number {}", spelling));
        case IntParse::kOverflow:
          return Fail(pos_, fmt::format("the integer {} does not fit 64 bits", spelling));
      }
      Push(TokenType::kInteger, pos_, spelling).integer = value;
    }
    pos_ = end;
    return Status::Ok();
  }

  Status LexString(char quote) {
    size_t end = pos_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return Fail(pos_, "the string is never closed");
    std::string value;
    std::string error;
    const std::string_view body = text_.substr(pos_ + 1, end - pos_ - 1);
    if (!UnescapeString(body, &value, &error)) return Fail(pos_, error);
    Push(TokenType::kString, pos_, std::move(value));
    pos_ = end + 1;
    return Status::Ok();
  }

  std::string source_;
  std::string_view text_;
  size_t pos_ = 0;
  bool line_starting_ = true;
  size_t line_pos_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  if (!IsValidUtf8(source)) return Corrupt("chat template: the text is not valid UTF-8");
  return Lexer(NormalizeNewlines(source)).Run();
}

}  // namespace tq::jinja

#include "chat/template/unescape.h"

#include <fmt/format.h>

#include "chat/template/numbers.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

constexpr size_t kNone = std::string_view::npos;

// *pos stands on the x, u or U.
bool UnescapeHex(std::string_view body, size_t* pos, std::string* out, std::string* error) {
  const char kind = body[*pos];
  const size_t length = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  const std::string_view digits = body.substr(*pos + 1, length);
  int64_t code_point = 0;
  if (digits.size() != length || digits.find_first_not_of("0123456789abcdefABCDEF") != kNone ||
      ParseInt(digits, 16, &code_point) != IntParse::kOk || code_point > 0x10FFFF ||
      (code_point >= 0xD800 && code_point < 0xE000)) {
    *error =
        fmt::format("the escape \\{} is not followed by the {} hexadecimal digits of a character",
                    kind, length);
    return false;
  }
  AppendCodePoint(out, static_cast<char32_t>(code_point));
  *pos += 1 + length;
  return true;
}

// Jinja escapes non-ASCII text before it decodes, so a backslash in front meets a backslash.
std::string AsEscape(char32_t code_point) {
  const auto code = static_cast<uint32_t>(code_point);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

}  // namespace

bool UnescapeString(std::string_view body, std::string* out, std::string* error) {
  static constexpr std::string_view kPlain = "\\'\"abfnrtv";
  static constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
  size_t pos = 0;
  while (pos < body.size()) {
    if (body[pos] != '\\' || pos + 1 == body.size()) {
      *out += body[pos++];
      continue;
    }
    const char c = body[++pos];
    const size_t plain = kPlain.find(c);
    if (plain != kNone) {
      *out += kMeaning[plain];
      ++pos;
    } else if (c == '\n') {
      ++pos;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      if (!UnescapeHex(body, &pos, out, error)) return false;
    } else if (c >= '0' && c <= '7') {
      char32_t code_point = 0;
      for (int i = 0; i < 3 && pos < body.size() && body[pos] >= '0' && body[pos] <= '7'; ++i) {
        code_point = code_point * 8 + static_cast<char32_t>(body[pos++] - '0');
      }
      AppendCodePoint(out, code_point);
    } else if (c == 'N') {
      *error = "\\N{...} escapes are not supported";
      return false;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      *out += AsEscape(NextCodePoint(body, &pos));
    } else {
      *out += '\\';
    }
  }
  return true;
}

}  // namespace tq::jinja

#include "tokenizer/component.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/unicode.h"

namespace tq::tok {

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 64;
  std::string out = "\"";
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = NextChar(text, &pos);
    if (begin >= kMaxBytes) {
      out += "...";
      break;
    }
    if (c < 0x20 || c == 0x7F) {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += text.substr(begin, pos - begin);
    }
  }
  return out + "\"";
}

Result<std::string> OneCharField(ConfigReader* reader, std::string_view key,
                                 std::string_view default_value) {
  std::string text = reader->String(key, std::string(default_value));
  TQ_RETURN_IF_ERROR(reader->status());
  size_t pos = 0;
  if (!text.empty()) NextChar(text, &pos);
  if (text.empty() || pos != text.size()) {
    return Corrupt(reader->where() + ": " + std::string(key) + ": expected one character, found " +
                   Quoted(text));
  }
  return text;
}

}  // namespace tq::tok

#include "chat/template/text.h"

#include <algorithm>

#include <string.h>

namespace tq::jinja {

bool IsValidUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || i + length > text.size()) return false;
    char32_t code_point = lead & (0x7Fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if ((byte & 0xC0) != 0x80) return false;
      code_point = (code_point << 6) | (byte & 0x3Fu);
    }
    if (length == 3 && (code_point < 0x800 || (code_point >= 0xD800 && code_point < 0xE000))) {
      return false;
    }
    if (length == 4 && (code_point < 0x10000 || code_point > 0x10FFFF)) return false;
    i += length;
  }
  return true;
}

size_t CodePointCount(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

char32_t NextCodePoint(std::string_view text, size_t* pos) {
  const auto lead = static_cast<unsigned char>(text[*pos]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t code_point = length == 1 ? lead : lead & (0x7Fu >> length);
  for (size_t k = 1; k < length && *pos + k < text.size(); ++k) {
    code_point = (code_point << 6) | (static_cast<unsigned char>(text[*pos + k]) & 0x3Fu);
  }
  *pos = std::min(*pos + length, text.size());
  return code_point;
}

void AppendCodePoint(std::string* out, char32_t c) {
  const auto push = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    push(c);
  } else if (c < 0x800) {
    push(0xC0 | (c >> 6));
    push(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    push(0xE0 | (c >> 12));
    push(0x80 | ((c >> 6) & 0x3F));
    push(0x80 | (c & 0x3F));
  } else {
    push(0xF0 | (c >> 18));
    push(0x80 | ((c >> 12) & 0x3F));
    push(0x80 | ((c >> 6) & 0x3F));
    push(0x80 | (c & 0x3F));
  }
}

size_t ByteOffset(std::string_view text, size_t code_point_idx) {
  size_t seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (seen++ == code_point_idx) return i;
  }
  return text.size();
}

std::string_view Strip(std::string_view text, Side side, std::optional<std::string_view> chars) {
  std::u32string set;
  if (chars) {
    for (size_t i = 0; i < chars->size();) set.push_back(NextCodePoint(*chars, &i));
  }
  const auto strips = [&](char32_t c) {
    return chars ? set.find(c) != std::u32string::npos : IsSpace(c);
  };
  size_t begin = 0;
  size_t end = text.size();
  if (side != Side::kRight) {
    while (begin < end) {
      size_t next = begin;
      if (!strips(NextCodePoint(text, &next))) break;
      begin = next;
    }
  }
  if (side != Side::kLeft) {
    while (end > begin) {
      size_t last = end - 1;
      while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      size_t next = last;
      if (!strips(NextCodePoint(text, &next))) break;
      end = last;
    }
  }
  return text.substr(begin, end - begin);
}

namespace {
bool IsLineBreak(char32_t c) {
  return c == '\n' || c == '\r' || c == '\v' || c == '\f' || (c >= 0x1C && c <= 0x1E) ||
         c == 0x85 || c == 0x2028 || c == 0x2029;
}
}  // namespace

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    const char32_t c = NextCodePoint(text, &i);
    if (!IsLineBreak(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : at) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::vector<std::string_view> SplitWhitespace(std::string_view text, int64_t max_splits,
                                              bool from_right) {
  std::vector<std::string_view> parts;
  std::string_view rest = Strip(text, from_right ? Side::kRight : Side::kLeft, std::nullopt);
  while (!rest.empty()) {
    if (max_splits >= 0 && static_cast<int64_t>(parts.size()) == max_splits) {
      parts.push_back(Strip(rest, from_right ? Side::kRight : Side::kLeft, std::nullopt));
      break;
    }
    if (from_right) {
      size_t begin = rest.size();
      while (begin > 0) {
        size_t last = begin - 1;
        while (last > 0 && (static_cast<unsigned char>(rest[last]) & 0xC0) == 0x80) --last;
        size_t next = last;
        if (IsSpace(NextCodePoint(rest, &next))) break;
        begin = last;
      }
      parts.push_back(rest.substr(begin));
      rest = Strip(rest.substr(0, begin), Side::kRight, std::nullopt);
    } else {
      size_t end = 0;
      while (end < rest.size()) {
        size_t next = end;
        if (IsSpace(NextCodePoint(rest, &next))) break;
        end = next;
      }
      parts.push_back(rest.substr(0, end));
      rest = Strip(rest.substr(end), Side::kLeft, std::nullopt);
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> SplitOn(std::string_view text, std::string_view separator,
                                      int64_t max_splits, bool from_right) {
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  while (max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits) {
    const size_t at = from_right ? rest.rfind(separator) : FindText(rest, separator);
    if (at == std::string_view::npos) break;
    if (from_right) {
      parts.push_back(rest.substr(at + separator.size()));
      rest = rest.substr(0, at);
    } else {
      parts.push_back(rest.substr(0, at));
      rest = rest.substr(at + separator.size());
    }
  }
  parts.push_back(rest);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

size_t FindText(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem is linear; string_view::find is quadratic on hostile text.
  const void* hit = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (hit == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(hit) - text.data());
}

size_t CountText(std::string_view text, std::string_view needle) {
  if (needle.empty()) return CodePointCount(text) + 1;
  size_t count = 0;
  size_t at = 0;
  while ((at = FindText(text, needle, at)) != std::string_view::npos) {
    ++count;
    at += needle.size();
  }
  return count;
}

std::string ReplaceText(std::string_view text, std::string_view from, std::string_view to,
                        int64_t max_replacements) {
  std::string out;
  int64_t left = max_replacements < 0 ? INT64_MAX : max_replacements;
  size_t at = 0;
  if (from.empty()) {
    while (left > 0) {
      out += to;
      --left;
      if (at == text.size()) return out;
      const size_t begin = at;
      NextCodePoint(text, &at);
      out += text.substr(begin, at - begin);
    }
    out += text.substr(at);
    return out;
  }
  while (left > 0) {
    const size_t hit = FindText(text, from, at);
    if (hit == std::string_view::npos) break;
    out += text.substr(at, hit - at);
    out += to;
    at = hit + from.size();
    --left;
  }
  out += text.substr(at);
  return out;
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace tq::jinja

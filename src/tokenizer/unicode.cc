#include "tokenizer/unicode.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <utf8proc.h>

namespace tq::tok {

char32_t NextChar(std::string_view text, size_t* pos) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const size_t at = *pos;
  const unsigned lead = byte(at);
  char32_t c = lead;
  size_t length = 1;
  if (lead >= 0xF0) {
    c = (lead & 7) << 18 | (byte(at + 1) & 63) << 12 | (byte(at + 2) & 63) << 6 |
        (byte(at + 3) & 63);
    length = 4;
  } else if (lead >= 0xE0) {
    c = (lead & 15) << 12 | (byte(at + 1) & 63) << 6 | (byte(at + 2) & 63);
    length = 3;
  } else if (lead >= 0xC0) {
    c = (lead & 31) << 6 | (byte(at + 1) & 63);
    length = 2;
  }
  *pos = std::min(at + length, text.size());
  return c;
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 63)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 63)));
    out->push_back(static_cast<char>(0x80 | (c & 63)));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 63)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 63)));
    out->push_back(static_cast<char>(0x80 | (c & 63)));
  }
}

size_t PreviousCharStart(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

void Utf8Assembler::Append(std::string_view bytes, std::string* out) {
  for (const char raw : bytes) {
    const auto b = static_cast<unsigned char>(raw);
    if (num_missing_ > 0) {
      if (b >= low_ && b <= high_) {
        low_ = 0x80;
        high_ = 0xBF;
        pending_[num_pending_++] = raw;
        if (--num_missing_ == 0) {
          out->append(pending_, static_cast<size_t>(num_pending_));
          num_pending_ = 0;
        }
        continue;
      }
      Flush(out);
    }
    if (b < 0x80) {
      out->push_back(raw);
      continue;
    }
    if (b < 0xC2 || b > 0xF4) {
      out->append(kReplacementUtf8);
      continue;
    }
    // Overlong forms, surrogates and values beyond U+10FFFF show in the second byte.
    low_ = b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
    high_ = b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
    num_missing_ = b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3;
    pending_[0] = raw;
    num_pending_ = 1;
  }
}

void Utf8Assembler::Flush(std::string* out) {
  const int count = one_per_byte_ ? num_pending_ : std::min(num_pending_, 1);
  for (int i = 0; i < count; ++i) out->append(kReplacementUtf8);
  num_pending_ = 0;
  num_missing_ = 0;
}

bool IsUtf8(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  for (size_t at = 0; at < text.size();) {
    const unsigned lead = byte(at);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    if (lead < 0xC2 || lead > 0xF4) return false;
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(at + 1) < low || byte(at + 1) > high) return false;
    const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    for (size_t i = 2; i < length; ++i) {
      if ((byte(at + i) & 0xC0) != 0x80) return false;
    }
    at += length;
  }
  return true;
}

std::string RepairUtf8(std::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  Utf8Assembler assembler(/*one_per_byte=*/false);
  assembler.Append(text, &out);
  assembler.Flush(&out);
  return out;
}

namespace {

struct CharRange {
  char32_t first;
  char32_t last;
};
#include "tokenizer/unicode_tables.inc"

bool Contains(std::span<const CharRange> ranges, char32_t c) {
  const auto it =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](char32_t value, const CharRange& range) { return value < range.first; });
  return it != ranges.begin() && c <= std::prev(it)->last;
}

bool IsCombining(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class != 0; }

// utf8proc orders marks by insertion, quadratic in a long run: this is the same order by a sort.
void OrderMarks(std::vector<utf8proc_int32_t>* chars) {
  for (size_t i = 0; i < chars->size();) {
    if (!IsCombining((*chars)[i])) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < chars->size() && IsCombining((*chars)[end])) ++end;
    std::stable_sort(chars->begin() + static_cast<std::ptrdiff_t>(i),
                     chars->begin() + static_cast<std::ptrdiff_t>(end),
                     [](utf8proc_int32_t a, utf8proc_int32_t b) {
                       return utf8proc_get_property(a)->combining_class <
                              utf8proc_get_property(b)->combining_class;
                     });
    i = end;
  }
}

}  // namespace

bool IsWhiteSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsNumeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return Contains(kNumeric, c);
}

bool IsPunctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  return Contains(kPunctuation, c);
}

bool IsMark(char32_t c) { return c >= 0x300 && Contains(kMarks, c); }
bool IsNonSpacingMark(char32_t c) { return c >= 0x300 && Contains(kNonSpacingMarks, c); }
bool IsControlOrFormat(char32_t c) { return Contains(kControls, c); }

size_t GraphemeEnd(std::string_view text, size_t begin) {
  size_t end = begin;
  utf8proc_int32_t state = 0;
  auto previous = static_cast<utf8proc_int32_t>(NextChar(text, &end));
  while (end < text.size()) {
    size_t next = end;
    const auto c = static_cast<utf8proc_int32_t>(NextChar(text, &next));
    if (utf8proc_grapheme_break_stateful(previous, c, &state)) break;
    previous = c;
    end = next;
  }
  return end;
}

bool IsWordChar(char32_t c) {
  if (c < 0x80) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  return Contains(kWordChars, c);
}

void AppendLowerCase(char32_t c, std::string* out) {
  if (c == 0x130) {  // the only character whose full lower case has two
    out->append("i\xCC\x87");
    return;
  }
  AppendUtf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
}

namespace {

// Appends the characters in a normal form. Clears them.
void FlushNormalized(NormalForm form, std::vector<utf8proc_int32_t>* chars, std::string* out) {
  OrderMarks(chars);
  size_t count = chars->size();
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const utf8proc_ssize_t n = utf8proc_normalize_utf32(
        chars->data(), static_cast<utf8proc_ssize_t>(chars->size()), options);
    if (n >= 0) count = static_cast<size_t>(n);
  }
  for (size_t i = 0; i < count; ++i) AppendUtf8(static_cast<char32_t>((*chars)[i]), out);
  chars->clear();
}

// Appends a normal form of the text. Characters that the reference's tables do not know stay as
// they are and part what is beside them.
void AppendNormalized(std::string_view text, NormalForm form, std::string* out) {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const auto decompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                        (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> chars;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = NextChar(text, &pos);
    if (Contains(kInert, c)) {
      FlushNormalized(form, &chars, out);
      AppendUtf8(c, out);
      continue;
    }
    utf8proc_int32_t parts[32];  // the longest decomposition has 18 characters
    int last_boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 32,
                                                       decompose, &last_boundary);
    if (n < 0 || n > 32) {
      chars.push_back(static_cast<utf8proc_int32_t>(c));
    } else {
      chars.insert(chars.end(), parts, parts + n);
    }
  }
  FlushNormalized(form, &chars, out);
}

}  // namespace

std::string Normalize(std::string_view text, NormalForm form) {
  // Below U+0300 every text is NFC already, and nothing joins a character there to the one before
  // it; ASCII is so in every form. Only the stretches between such characters take part, each with
  // the plain character before it, which a mark may join.
  const auto limit = static_cast<unsigned char>(form == NormalForm::kNfc ? 0xCC : 0x80);
  const auto is_plain = [&](char b) {
    return static_cast<unsigned char>(b) < limit || IsContinuationByte(b);
  };
  std::string out;
  out.reserve(text.size());
  for (size_t done = 0; done < text.size();) {
    size_t begin = done;
    while (begin < text.size() && is_plain(text[begin])) ++begin;
    size_t end = begin;
    while (end < text.size() &&
           (static_cast<unsigned char>(text[end]) >= limit || IsContinuationByte(text[end]))) {
      ++end;
    }
    if (begin < text.size() && begin > done) begin = PreviousCharStart(text, begin);
    out.append(text, done, begin - done);
    if (begin < end) AppendNormalized(text.substr(begin, end - begin), form, &out);
    done = end;
  }
  return out;
}

}  // namespace tq::tok

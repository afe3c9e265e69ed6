#include "tokenizer/unicode.h"

#include <algorithm>
#include <cstdint>
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

std::string RepairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Utf8Assembler assembler(/*one_per_byte=*/false);
  assembler.Append(text, &out);
  assembler.Flush(&out);
  return out;
}

namespace {

utf8proc_category_t Category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
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
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool IsPunctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsMark(char32_t c) {
  if (c < 0x300) return false;
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsWordChar(char32_t c) {
  if (c < 0x80) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  if (c == 0x200C || c == 0x200D) return true;  // Join_Control
  // Alphabetic symbols (circled and squared letters).
  if ((c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
      (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189)) {
    return true;
  }
  const utf8proc_category_t category = Category(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC;
}

void AppendLowerCase(char32_t c, std::string* out) {
  if (c == 0x130) {  // the only character whose full lower case has two
    out->append("i\xCC\x87");
    return;
  }
  AppendUtf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
}

std::string Normalize(std::string_view text, NormalForm form) {
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  // Below U+0300 every text is NFC already; ASCII is in every form.
  const auto limit = static_cast<unsigned char>(form == NormalForm::kNfc ? 0xCC : 0x80);
  if (std::all_of(text.begin(), text.end(),
                  [&](char b) { return static_cast<unsigned char>(b) < limit; })) {
    return std::string(text);
  }
  const int flags = UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
  const auto decompose = static_cast<utf8proc_option_t>(flags | UTF8PROC_DECOMPOSE);
  std::vector<utf8proc_int32_t> chars;
  chars.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const auto c = static_cast<utf8proc_int32_t>(NextChar(text, &pos));
    utf8proc_int32_t parts[32];  // the longest decomposition has 18 characters
    int last_boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, 32, decompose, &last_boundary);
    if (n < 0 || n > 32) {
      chars.push_back(c);
    } else {
      chars.insert(chars.end(), parts, parts + n);
    }
  }
  OrderMarks(&chars);
  size_t count = chars.size();
  if (compose) {
    const auto options = static_cast<utf8proc_option_t>(flags | UTF8PROC_COMPOSE);
    const utf8proc_ssize_t n = utf8proc_normalize_utf32(
        chars.data(), static_cast<utf8proc_ssize_t>(chars.size()), options);
    if (n >= 0) count = static_cast<size_t>(n);
  }
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < count; ++i) AppendUtf8(static_cast<char32_t>(chars[i]), &out);
  return out;
}

}  // namespace tq::tok

// Character classes and case mapping, from utf8proc's tables plus the few mappings that grow.
#include <utf8proc.h>

#include "chat/template/text.h"

namespace tq::jinja {
namespace {

utf8proc_category_t Category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

struct Expansion {
  char32_t from;
  std::string_view to;
};

// Upper case forms of more than one character.
constexpr Expansion kUpperExpansions[] = {
    {0x00DF, "SS"}, {0x0149, "\xCA\xBCN"}, {0x01F0, "J\xCC\x8C"}, {0xFB00, "FF"}, {0xFB01, "FI"},
    {0xFB02, "FL"}, {0xFB03, "FFI"},       {0xFB04, "FFL"},       {0xFB05, "ST"}, {0xFB06, "ST"},
};

void AppendUpper(std::string* out, char32_t c) {
  for (const Expansion& expansion : kUpperExpansions) {
    if (expansion.from == c) {
      *out += expansion.to;
      return;
    }
  }
  AppendCodePoint(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void AppendTitle(std::string* out, char32_t c) {
  for (const Expansion& expansion : kUpperExpansions) {
    if (expansion.from != c) continue;
    *out += c == 0x0149 || c == 0x01F0
                ? std::string(expansion.to)
                : std::string(expansion.to.substr(0, 1)) + ToLower(expansion.to.substr(1));
    return;
  }
  AppendCodePoint(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || IsTitleCase(c); }

// Marks and some punctuation do not end a word for the sigma rule.
bool IsCaseIgnorable(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019;
  }
}

// A capital sigma becomes the final form when a cased letter stands before it and none behind it.
bool IsFinalSigma(std::string_view text, size_t begin, size_t end) {
  bool before = false;
  for (size_t i = begin; i > 0;) {
    --i;
    while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
    size_t next = i;
    const char32_t c = NextCodePoint(text, &next);
    if (IsCaseIgnorable(c)) continue;
    before = IsCased(c);
    break;
  }
  if (!before) return false;
  for (size_t i = end; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    if (!IsCaseIgnorable(c)) return !IsCased(c);
  }
  return true;
}

void AppendLower(std::string* out, std::string_view text, size_t begin, size_t end, char32_t c) {
  if (c == 0x0130) {
    *out += "i\xCC\x87";
  } else if (c == 0x03A3 && IsFinalSigma(text, begin, end)) {
    *out += "\xCF\x82";
  } else {
    AppendCodePoint(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

}  // namespace

bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool IsAlpha(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool IsDecimal(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_ND; }

bool IsDigit(char32_t c) {
  return IsDecimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
         (c >= 0x2460 && c <= 0x2468);
}

bool IsNumeric(char32_t c) {
  const utf8proc_category_t category = Category(c);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool IsAlnum(char32_t c) { return IsAlpha(c) || IsNumeric(c); }
bool IsUpper(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LU; }
bool IsLower(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA; }
bool IsTitleCase(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LT; }

bool IsPrintable(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

bool IsIdentifierStart(char32_t c) {
  return c == '_' || IsAlpha(c) || Category(c) == UTF8PROC_CATEGORY_NL;
}

bool IsIdentifierPart(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return IsIdentifierStart(c);
  }
}

std::string ToLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = NextCodePoint(text, &i);
    AppendLower(&out, text, begin, i, c);
  }
  return out;
}

std::string ToUpper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) AppendUpper(&out, NextCodePoint(text, &i));
  return out;
}

std::string CaseFold(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    bool expanded = false;
    for (const Expansion& expansion : kUpperExpansions) {
      if (expansion.from != c) continue;
      out += ToLower(expansion.to);
      expanded = true;
    }
    if (expanded) continue;
    if (c == 0x03C2) {
      out += "\xCF\x83";  // the final sigma folds to the ordinary one
    } else if (c == 0x0130) {
      out += "i\xCC\x87";
    } else {
      AppendCodePoint(&out,
                      static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

std::string SwapCase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = NextCodePoint(text, &i);
    if (IsUpper(c)) {
      AppendLower(&out, text, begin, i, c);
    } else if (IsLower(c)) {
      AppendUpper(&out, c);
    } else {
      AppendCodePoint(&out, c);
    }
  }
  return out;
}

std::string Capitalize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = NextCodePoint(text, &i);
    if (begin == 0) {
      AppendTitle(&out, c);
    } else {
      AppendLower(&out, text, begin, i, c);
    }
  }
  return out;
}

std::string TitleWords(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = NextCodePoint(text, &i);
    if (in_word) {
      AppendLower(&out, text, begin, i, c);
    } else {
      AppendTitle(&out, c);
    }
    in_word = IsCased(c);
  }
  return out;
}

}  // namespace tq::jinja

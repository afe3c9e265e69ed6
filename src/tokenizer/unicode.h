// UTF-8 and Unicode properties as the reference tokenizers know them (unicode_tables.inc).
// Everything but IsUtf8, RepairUtf8 and Utf8Assembler takes well-formed UTF-8. No state; any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tq::tok {

inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";  // U+FFFD

// The code point at text[*pos]; moves *pos behind it. Requires *pos < text.size().
char32_t NextChar(std::string_view text, size_t* pos);
void AppendUtf8(char32_t c, std::string* out);
// Start of the character that ends at `end`. Requires end > 0.
size_t PreviousCharStart(std::string_view text, size_t end);

constexpr bool IsContinuationByte(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}
// End of the grapheme cluster that starts at `begin`. Requires begin < text.size().
size_t GraphemeEnd(std::string_view text, size_t begin);

bool IsUtf8(std::string_view text);
// Every maximal malformed subsequence becomes one U+FFFD.
std::string RepairUtf8(std::string_view text);

// Bytes in, whole characters out; at most three bytes wait for their rest. Malformed sequences give
// U+FFFD: one for each maximal subsequence, or (one_per_byte) one for each byte.
class Utf8Assembler {
 public:
  explicit Utf8Assembler(bool one_per_byte) : one_per_byte_(one_per_byte) {}
  void Append(std::string_view bytes, std::string* out);
  // The input ends here: a sequence that still waits is malformed.
  void Flush(std::string* out);

 private:
  bool one_per_byte_;
  char pending_[4] = {};
  int num_pending_ = 0;
  int num_missing_ = 0;
  unsigned char low_ = 0x80;  // bounds of the next continuation byte
  unsigned char high_ = 0xBF;
};

bool IsWhiteSpace(char32_t c);       // property White_Space
bool IsNumeric(char32_t c);          // categories Nd, Nl, No
bool IsPunctuation(char32_t c);      // categories P*, and the ASCII symbols
bool IsMark(char32_t c);             // categories M*
bool IsNonSpacingMark(char32_t c);   // category Mn
bool IsControlOrFormat(char32_t c);  // categories Cc, Cf, Co; not tab and line ends
bool IsWordChar(char32_t c);         // \w of Unicode regular expressions

// Full lower case of one character, without context.
void AppendLowerCase(char32_t c, std::string* out);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string Normalize(std::string_view text, NormalForm form);

}  // namespace tq::tok

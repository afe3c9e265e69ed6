// Text as Python sees it: code points, its character classes, its case mapping. UTF-8 in and out.
// Every string of the engine is valid UTF-8 (checked where text enters), so nothing here can fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tq::jinja {

bool IsValidUtf8(std::string_view text);
size_t CodePointCount(std::string_view text);
// The code point at byte *pos, which moves behind it.
char32_t NextCodePoint(std::string_view text, size_t* pos);
void AppendCodePoint(std::string* out, char32_t code_point);
// Byte offset of a code point; text.size() when there are fewer.
size_t ByteOffset(std::string_view text, size_t code_point_idx);

// str.isspace() of one character, and so on.
bool IsSpace(char32_t c);
bool IsAlpha(char32_t c);
bool IsDecimal(char32_t c);
bool IsDigit(char32_t c);
bool IsNumeric(char32_t c);
bool IsAlnum(char32_t c);
bool IsUpper(char32_t c);
bool IsLower(char32_t c);
bool IsTitleCase(char32_t c);
bool IsPrintable(char32_t c);
bool IsIdentifierStart(char32_t c);
bool IsIdentifierPart(char32_t c);

std::string ToLower(std::string_view text);
std::string ToUpper(std::string_view text);
std::string CaseFold(std::string_view text);
std::string SwapCase(std::string_view text);
std::string Capitalize(std::string_view text);  // str.capitalize()
std::string TitleWords(std::string_view text);  // str.title()

enum class Side { kLeft, kRight, kBoth };
// str.strip(chars); nullopt strips white space.
std::string_view Strip(std::string_view text, Side side, std::optional<std::string_view> chars);

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);
// str.split() without a separator. max_splits < 0: no limit.
std::vector<std::string_view> SplitWhitespace(std::string_view text, int64_t max_splits,
                                              bool from_right);
// str.split(separator); the separator is not empty.
std::vector<std::string_view> SplitOn(std::string_view text, std::string_view separator,
                                      int64_t max_splits, bool from_right);

// As string_view::find, in linear time whatever the bytes.
size_t FindText(std::string_view text, std::string_view needle, size_t from = 0);
size_t CountText(std::string_view text, std::string_view needle);
// max_replacements < 0: all. An empty `from` matches before every code point and at the end.
std::string ReplaceText(std::string_view text, std::string_view from, std::string_view to,
                        int64_t max_replacements);

std::string EscapeHtml(std::string_view text);

}  // namespace tq::jinja

// FastRegex finds what oniguruma finds.
#include "tokenizer/fast_regex.h"

#include <random>

#include <gtest/gtest.h>

#include "tokenizer/regex.h"

namespace tq::tok {
namespace {

// The expressions of the known families.
// clang-format off
constexpr const char* kFamilies[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+",
    R"(\p{N}{1,3})", R"( {2,})", R"(\s+$|a)"};
// Smaller ones: give-back, counts, empty matches, groups.
constexpr const char* kSmall[] = {
    R"(a*ab)", R"(a?a{2}b|a)", R"([ab]*b(?!a))", R"(a{2,3})", R"(x?)", R"((?:ab|a)?b)", R"((?i:K|s)a)",
    R"(\S+(?!\s))", R"([^\S\n]+)", R"(\d+|\D)", R"([a-c&&[^b]]+)", R"(\P{L}+)", R"(\p{^L}+)", R"((?:[ab]c|d))",
    R"([a\-c]+|[+*]{1,})"};
// clang-format on

constexpr char32_t kChars[] = {
    'a',    'b',   'c',    'd',   'A',    'S',    's',   'l',     'L',     'v',     'e',
    'r',    'T',   '\'',   ' ',   ' ',    '\n',   '\r',  '\t',    '1',     '2',     '3',
    '/',    '!',   '-',    '[',   '_',    '\0',   0x17F, 0x212A,  0xA0,    0x3000,  0x2028,
    0x85,   0x301, 0x5D0,  0x64B, 0x915,  0x94D,  0x1C5, 0x2B0,   0x4E00,  0x9FA5,  0x3042,
    0x30FC, 0xBD,  0x2167, 0x661, 0x200D, 0xFE0F, 0xAD,  0x1F600, 0x20000, 0x1D400, 0xFFFD};

std::string RandomText(std::mt19937* random) {
  std::string text;
  const size_t length = (*random)() % 24;
  for (size_t i = 0; i < length; ++i) {
    const bool any = (*random)() % 8 == 0;
    char32_t c = any ? static_cast<char32_t>((*random)() % 0x110000)
                     : kChars[(*random)() % std::size(kChars)];
    if (c >= 0xD800 && c < 0xE000) c = 'x';
    for (size_t n = (*random)() % 6 == 0 ? 5 : 1; n > 0; --n) AppendUtf8(c, &text);
  }
  return text;
}

using Matches = std::vector<std::pair<size_t, size_t>>;

template <typename Scan, typename Expression>
Matches All(const Expression& expression, std::string_view text) {
  Scan scan(expression, text);
  Matches out;
  size_t begin = 0;
  size_t end = 0;
  while (scan.Next(&begin, &end)) out.emplace_back(begin, end);
  return out;
}

void ExpectEqual(const char* pattern, int num_texts, bool must_compile) {
  SCOPED_TRACE(pattern);
  const auto slow = Regex::Compile(pattern, "test");
  ASSERT_TRUE(slow.ok()) << slow.status().message();
  const auto fast = FastRegex::Compile(pattern);
  ASSERT_TRUE(fast != nullptr || !must_compile);
  if (fast == nullptr) return;
  std::mt19937 random(1);
  for (int i = 0; i < num_texts; ++i) {
    const std::string text = RandomText(&random);
    ASSERT_EQ(All<FastScan>(*fast, text), All<RegexScan>(**slow, text)) << text;
  }
}

TEST(FastRegex, FindsWhatTheLibraryFinds) {
  for (const char* pattern : kFamilies) {
    ExpectEqual(pattern, 1500, std::string_view(pattern) != R"(\s+$|a)");
  }
  for (const char* pattern : kSmall) ExpectEqual(pattern, 400, true);
}

// Every character by itself and between letters: the classes are the library's.
TEST(FastRegex, KnowsEveryCharacter) {
  const char* pattern = kFamilies[3];
  const auto slow = Regex::Compile(pattern, "test");
  const auto fast = FastRegex::Compile(pattern);
  ASSERT_TRUE(slow.ok() && fast != nullptr);
  std::string text;
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 7) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text += 'a';
    AppendUtf8(c, &text);
  }
  EXPECT_EQ(All<FastScan>(*fast, text), All<RegexScan>(**slow, text));
}

TEST(FastRegex, LeavesTheRestToTheLibrary) {
  for (const char* pattern :
       {"",          "(a+)+z",     "a|",    "a+?",  "a++",      "(?<=a)b",     "a(?=b)",
        ".",         "^a",         "a$",    "(a)",  "\\bx",     "[[:alpha:]]", "\\p{Nonsense}",
        "(?i:ss|x)", "(?i:fi)",    "[",     "[]",   "a{",       "a{2",         "a{3,2}",
        "a{0}",      "(?:",        "(?:)",  "(?!a", "(?i:a",    "\\",          "\\x41",
        "a{1001}",   "[a-\\p{L}]", "[z-a]", "[a-]", "(?:a|b)*", "\xFF"}) {
    EXPECT_EQ(FastRegex::Compile(pattern), nullptr) << pattern;
  }
}

}  // namespace
}  // namespace tq::tok

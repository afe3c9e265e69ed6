// BertNormalizer: control characters out, spaces around Chinese characters, accents off, lower
// case.
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

// The blocks that BERT cuts character by character.
bool IsChinese(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kBlocks[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  for (const auto& [first, last] : kBlocks) {
    if (c >= first && c <= last) return true;
  }
  return false;
}

class BertNormalizer : public Normalizer {
 public:
  BertNormalizer(bool clean, bool space_chinese, bool strip_accents, bool lower)
      : clean_(clean),
        space_chinese_(space_chinese),
        strip_accents_(strip_accents),
        lower_(lower) {}

  void Apply(std::string* text, bool* at_start) const override {
    const bool had_text = !text->empty();
    if (clean_ || space_chinese_) *text = CleanAndSpace(*text);
    if (strip_accents_) *text = Normalize(*text, NormalForm::kNfd);
    if (strip_accents_ || lower_) *text = StripAndLower(*text);
    if (had_text && text->empty()) *at_start = false;
  }
  // Two spaces around three bytes, a decomposition, a longer lower case.
  double Growth() const override { return 2.0 * 3.0 * 1.5; }

 private:
  std::string CleanAndSpace(std::string_view text) const {
    std::string out;
    out.reserve(text.size() + text.size() / 8);
    for (size_t pos = 0; pos < text.size();) {
      const char32_t c = NextChar(text, &pos);
      const bool is_blank = c == '\t' || c == '\n' || c == '\r';
      if (clean_ && !is_blank && (c == 0xFFFD || IsControlOrFormat(c))) continue;
      if (clean_ && IsWhiteSpace(c)) {
        out.push_back(' ');
      } else if (space_chinese_ && IsChinese(c)) {
        out.push_back(' ');
        AppendUtf8(c, &out);
        out.push_back(' ');
      } else {
        AppendUtf8(c, &out);
      }
    }
    return out;
  }

  std::string StripAndLower(std::string_view text) const {
    std::string out;
    out.reserve(text.size());
    for (size_t pos = 0; pos < text.size();) {
      const char32_t c = NextChar(text, &pos);
      if (strip_accents_ && IsNonSpacingMark(c)) continue;
      if (lower_) {
        AppendLowerCase(c, &out);
      } else {
        AppendUtf8(c, &out);
      }
    }
    return out;
  }

  bool clean_;
  bool space_chinese_;
  bool strip_accents_;
  bool lower_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakeBertNormalizer(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const bool clean = reader.Bool("clean_text", true);
  const bool space_chinese = reader.Bool("handle_chinese_chars", true);
  const bool lower = reader.Bool("lowercase", true);
  const bool strip_accents = reader.Bool("strip_accents", lower);  // null: with lower case
  TQ_RETURN_IF_ERROR(reader.status());
  return std::unique_ptr<Normalizer>(
      std::make_unique<BertNormalizer>(clean, space_chinese, strip_accents, lower));
}

}  // namespace tq::tok

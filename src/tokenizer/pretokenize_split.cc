// Pre-tokenizers that only cut: Split, Digits, Punctuation, Whitespace and their kin.
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/unicode.h"

namespace tq::tok {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

namespace {

class SplitPreTokenizer : public PreTokenizer {
 public:
  SplitPreTokenizer(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void Apply(Pieces* pieces) const override { SplitPieces(pattern_, behavior_, invert_, pieces); }
  double Growth() const override { return 1.0; }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

PreTokenizerPtr NewSplit(Pattern pattern, SplitBehavior behavior) {
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), behavior, /*invert=*/false);
}

// Runs of word characters, runs of others; white space goes.
class WhitespacePreTokenizer : public PreTokenizer {
 public:
  void Apply(Pieces* pieces) const override {
    std::vector<Piece> out;
    for (const Piece& piece : pieces->pieces) {
      const std::string_view text = pieces->View(piece);
      size_t begin = 0;
      Kind kind = Kind::kSpace;
      const auto flush = [&](size_t end) {
        if (kind != Kind::kSpace && begin < end) {
          out.push_back({piece.begin + begin, piece.begin + end, piece.at_start && begin == 0});
        }
      };
      for (size_t pos = 0; pos < text.size();) {
        const size_t at = pos;
        const Kind next = KindOf(NextChar(text, &pos));
        if (next == kind) continue;
        flush(at);
        begin = at;
        kind = next;
      }
      flush(text.size());
    }
    pieces->pieces = std::move(out);
  }
  double Growth() const override { return 1.0; }

 private:
  enum class Kind { kSpace, kWord, kOther };
  static Kind KindOf(char32_t c) {
    if (IsWordChar(c)) return Kind::kWord;
    return IsWhiteSpace(c) ? Kind::kSpace : Kind::kOther;
  }
};

class BertPreTokenizer : public PreTokenizer {
 public:
  void Apply(Pieces* pieces) const override {
    SplitPieces(space_, SplitBehavior::kRemoved, false, pieces);
    SplitPieces(punctuation_, SplitBehavior::kIsolated, false, pieces);
  }
  double Growth() const override { return 1.0; }

 private:
  Pattern space_ = Pattern::EachChar(&IsWhiteSpace);
  Pattern punctuation_ = Pattern::EachChar(&IsPunctuation);
};

}  // namespace

Result<PreTokenizerPtr> MakeSplit(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const Json* pattern_json = reader.Raw("pattern");
  const std::string behavior_name = reader.String("behavior", "");
  const bool invert = reader.Bool("invert", false);
  TQ_RETURN_IF_ERROR(reader.status());
  if (pattern_json == nullptr) return Corrupt(where + ": pattern is missing");
  TQ_ASSIGN_OR_RETURN(Pattern pattern, Pattern::FromJson(*pattern_json, where + ".pattern"));
  TQ_ASSIGN_OR_RETURN(const SplitBehavior behavior, ParseSplitBehavior(behavior_name, where));
  return PreTokenizerPtr(std::make_unique<SplitPreTokenizer>(std::move(pattern), behavior, invert));
}

Result<PreTokenizerPtr> MakeDigits(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const bool individual = reader.Bool("individual_digits", false);
  TQ_RETURN_IF_ERROR(reader.status());
  return NewSplit(Pattern::EachChar(&IsNumeric),
                  individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

Result<PreTokenizerPtr> MakePunctuation(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const std::string behavior_name = reader.String("behavior", "Isolated");
  TQ_RETURN_IF_ERROR(reader.status());
  TQ_ASSIGN_OR_RETURN(const SplitBehavior behavior, ParseSplitBehavior(behavior_name, where));
  return NewSplit(Pattern::EachChar(&IsPunctuation), behavior);
}

Result<PreTokenizerPtr> MakeWhitespace(const Json&, const std::string&) {
  return PreTokenizerPtr(std::make_unique<WhitespacePreTokenizer>());
}

Result<PreTokenizerPtr> MakeWhitespaceSplit(const Json&, const std::string&) {
  return NewSplit(Pattern::EachChar(&IsWhiteSpace), SplitBehavior::kRemoved);
}

// White space goes; each punctuation character is a piece.
Result<PreTokenizerPtr> MakeBertPreTokenizer(const Json&, const std::string&) {
  return PreTokenizerPtr(std::make_unique<BertPreTokenizer>());
}

Result<PreTokenizerPtr> MakeCharDelimiterSplit(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  TQ_ASSIGN_OR_RETURN(std::string delimiter, OneCharField(&reader, "delimiter", ""));
  return NewSplit(Pattern::Literal(std::move(delimiter)), SplitBehavior::kRemoved);
}

}  // namespace tq::tok

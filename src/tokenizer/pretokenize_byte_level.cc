// ByteLevel: cuts words (GPT-2's rule, unless use_regex is off), then writes each byte as a
// character.
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/byte_chars.h"
#include "tokenizer/component.h"
#include "tokenizer/pretokenizer.h"

namespace tq::tok {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

namespace {

constexpr std::string_view kWordRegex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool add_prefix_space, std::optional<Pattern> words)
      : add_prefix_space_(add_prefix_space), words_(std::move(words)) {}

  void Apply(Pieces* pieces) const override {
    if (add_prefix_space_) AddPrefixSpaces(pieces);
    if (words_.has_value()) SplitPieces(*words_, SplitBehavior::kIsolated, false, pieces);
    std::string text;
    text.reserve(pieces->text.size() + pieces->text.size() / 2);
    for (Piece& piece : pieces->pieces) {
      const size_t begin = text.size();
      AppendByteChars(pieces->View(piece), &text);
      piece.begin = begin;
      piece.end = text.size();
    }
    pieces->text = std::move(text);
  }
  double Growth() const override { return add_prefix_space_ ? 4.0 : 2.0; }

 private:
  static void AddPrefixSpaces(Pieces* pieces) {
    std::string text;
    text.reserve(pieces->text.size() + pieces->pieces.size());
    for (Piece& piece : pieces->pieces) {
      const std::string_view view = pieces->View(piece);
      const size_t begin = text.size();
      if (!view.starts_with(' ')) text.push_back(' ');
      text.append(view);
      piece.begin = begin;
      piece.end = text.size();
    }
    pieces->text = std::move(text);
  }

  bool add_prefix_space_;
  std::optional<Pattern> words_;
};

}  // namespace

Result<PreTokenizerPtr> MakeByteLevelPreTokenizer(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const bool add_prefix_space = reader.Bool("add_prefix_space", true);
  const bool use_regex = reader.Bool("use_regex", true);
  TQ_RETURN_IF_ERROR(reader.status());
  std::optional<Pattern> words;
  if (use_regex) {
    TQ_ASSIGN_OR_RETURN(words, Pattern::FromRegex(kWordRegex, where));
  }
  return PreTokenizerPtr(
      std::make_unique<ByteLevelPreTokenizer>(add_prefix_space, std::move(words)));
}

}  // namespace tq::tok

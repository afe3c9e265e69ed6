// SentencePiece's normalizer: at each place a user-defined piece as it is, else the longest entry
// of the charsmap, else the character; spaces become marks.
#include <algorithm>
#include <utility>

#include "tokenizer/byte_trie.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

class SentencePieceNormalizer : public Normalizer {
 public:
  SentencePieceNormalizer(const SentencePieceFile& file, const SentencePieceOptions& options,
                          Charsmap map)
      : map_(std::move(map)),
        adds_prefix_(file.add_dummy_prefix && (options.legacy || options.add_prefix_space)),
        only_at_start_(!options.legacy),
        is_suffix_(file.whitespace_is_suffix),
        removes_spaces_(file.remove_extra_whitespaces),
        space_(file.escape_whitespaces ? kSpaceMark : " ") {
    for (const SentencePieceFile::Piece& piece : file.pieces) {
      if (piece.type == SentencePieceFile::Type::kUserDefined) frozen_.Insert(piece.text, 0);
    }
  }

  void Apply(std::string* text, bool* at_start) const override {
    std::string_view in = *text;
    while (removes_spaces_ && !in.empty()) {
      size_t length = 0;
      if (Next(in, &length) != " ") break;
      in.remove_prefix(length);
    }
    std::string out;
    out.reserve(in.size() + in.size() / 2);
    const bool wants_prefix = adds_prefix_ && !in.empty() && (!only_at_start_ || *at_start);
    if (wants_prefix && !is_suffix_) out += space_;
    AppendAll(in, &out);
    if (removes_spaces_) {
      while (out.ends_with(space_)) out.resize(out.size() - space_.size());
    }
    if (wants_prefix && is_suffix_) out += space_;
    *text = std::move(out);
  }
  // A mark for every byte that becomes a space, and the dummy prefix.
  double Growth() const override {
    return 3.0 + 3.0 * std::max(1.0, static_cast<double>(map_.max_content_bytes()));
  }

 private:
  void AppendAll(std::string_view in, std::string* out) const {
    bool after_space = removes_spaces_;
    while (!in.empty()) {
      size_t length = 0;
      std::string_view part = Next(in, &length);
      in.remove_prefix(length);
      while (after_space && part.starts_with(' ')) part.remove_prefix(1);
      if (part.empty()) continue;
      for (const char c : part) {
        if (c == ' ') {
          *out += space_;
        } else {
          out->push_back(c);
        }
      }
      after_space = removes_spaces_ && part.ends_with(' ');
    }
  }

  // What the text at its start becomes; *length: how much of it that replaces. `in` is not empty.
  std::string_view Next(std::string_view in, size_t* length) const {
    if (frozen_.Longest(in, length) != ByteTrie::kNone) return in.substr(0, *length);
    if (const auto match = map_.Longest(in)) {
      *length = match->length;
      return match->content;
    }
    *length = 0;
    NextChar(in, length);
    return in.substr(0, *length);
  }

  Charsmap map_;
  ByteTrie frozen_;
  bool adds_prefix_;
  bool only_at_start_;
  bool is_suffix_;
  bool removes_spaces_;
  std::string_view space_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakeSentencePieceNormalizer(const SentencePieceFile& file,
                                                                const SentencePieceOptions& options,
                                                                const std::string& where) {
  TQ_ASSIGN_OR_RETURN(Charsmap map, Charsmap::Parse(file.charsmap, where + ": charsmap"));
  return std::unique_ptr<Normalizer>(
      std::make_unique<SentencePieceNormalizer>(file, options, std::move(map)));
}

}  // namespace tq::tok

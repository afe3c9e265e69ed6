// PreTokenizer: cuts a normalized text into the pieces that the model sees, and may rewrite it on
// the way. One file per family; pretokenizer_list.inc is the list. Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "tokenizer/pattern.h"

namespace tq::tok {

struct Piece {
  size_t begin;
  size_t end;
  bool at_start;  // it begins where the whole input does
};

// A text and the pieces that are left of it, none empty.
struct Pieces {
  std::string text;
  std::vector<Piece> pieces;

  std::string_view View(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void Apply(Pieces* pieces) const = 0;
  // How many times longer the text may get.
  virtual double Growth() const = 0;
};

// Errors: kCorrupt, kUnsupported naming the type.
Result<std::unique_ptr<PreTokenizer>> MakePreTokenizer(const Json& json, const std::string& where);

// Splits every piece at the matches of a pattern.
void SplitPieces(const Pattern& pattern, SplitBehavior behavior, bool invert, Pieces* pieces);

}  // namespace tq::tok

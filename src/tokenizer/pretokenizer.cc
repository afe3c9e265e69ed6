#include "tokenizer/pretokenizer.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"

namespace tq::tok {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

#define PRE_TOKENIZER(type, make) Result<PreTokenizerPtr> make(const Json&, const std::string&);
#include "tokenizer/pretokenizer_list.inc"
#undef PRE_TOKENIZER

namespace {

constexpr Factory<PreTokenizerPtr> kFactories[] = {
#define PRE_TOKENIZER(type, make) {type, &make},
#include "tokenizer/pretokenizer_list.inc"
#undef PRE_TOKENIZER
};

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<PreTokenizerPtr> members)
      : members_(std::move(members)) {}
  void Apply(Pieces* pieces) const override {
    for (const PreTokenizerPtr& member : members_) member->Apply(pieces);
  }
  double Growth() const override {
    double growth = 1.0;
    for (const PreTokenizerPtr& member : members_) growth *= member->Growth();
    return growth;
  }

 private:
  std::vector<PreTokenizerPtr> members_;
};

}  // namespace

Result<PreTokenizerPtr> MakeSequencePreTokenizer(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(
      std::vector<PreTokenizerPtr> members,
      MakeSequence<PreTokenizerPtr>(&MakePreTokenizer, json, "pretokenizers", where));
  return PreTokenizerPtr(std::make_unique<SequencePreTokenizer>(std::move(members)));
}

Result<PreTokenizerPtr> MakePreTokenizer(const Json& json, const std::string& where) {
  return MakeComponent<PreTokenizerPtr>(kFactories, json, where);
}

void SplitPieces(const Pattern& pattern, SplitBehavior behavior, bool invert, Pieces* pieces) {
  std::vector<Piece> out;
  out.reserve(pieces->pieces.size());
  std::vector<Chunk> chunks;
  for (const Piece& piece : pieces->pieces) {
    pattern.Find(pieces->View(piece), &chunks);
    ApplySplitBehavior(behavior, invert, &chunks);
    for (const Chunk& chunk : chunks) {
      if (chunk.begin == chunk.end) continue;
      out.push_back(
          {piece.begin + chunk.begin, piece.begin + chunk.end, piece.at_start && chunk.begin == 0});
    }
  }
  pieces->pieces = std::move(out);
}

}  // namespace tq::tok

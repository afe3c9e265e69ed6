// SentencePiece decoder: marks become spaces; what the dummy prefix put at the start goes.
#include <utility>

#include "tokenizer/pattern.h"
#include "tokenizer/sentencepiece.h"

namespace tq::tok {
namespace {

class SentencePieceDecoder : public Decoder {
 public:
  SentencePieceDecoder(bool strips_one, bool strips_all)
      : mark_(Pattern::Literal(std::string(kSpaceMark))),
        strips_one_(strips_one),
        strips_all_(strips_all) {}
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(*this, next);
  }
  std::string TokenBytes(std::string token) const override { return mark_.ReplaceAll(token, " "); }
  double Growth() const override { return 1.0; }

 private:
  class Stage : public DecodeStage {
   public:
    Stage(const SentencePieceDecoder& owner, DecodeStage* next)
        : owner_(owner), next_(next), at_start_(owner.strips_one_ || owner.strips_all_) {}
    void Text(std::string_view fragment) override { token_ += fragment; }
    void EndToken() override {
      std::string_view token = token_;
      if (at_start_) {
        // Of a model that drops extra spaces, none can be meant before the first text.
        const bool had_mark = token.starts_with(kSpaceMark);
        if (had_mark) token.remove_prefix(kSpaceMark.size());
        at_start_ = token.empty() && (owner_.strips_all_ || !had_mark);
      }
      next_->Text(owner_.mark_.ReplaceAll(token, " "));
      next_->EndToken();
      token_.clear();
    }
    void Finish() override { next_->Finish(); }

   private:
    const SentencePieceDecoder& owner_;
    DecodeStage* next_;
    bool at_start_;
    std::string token_;
  };

  Pattern mark_;
  bool strips_one_;
  bool strips_all_;
};

}  // namespace

std::unique_ptr<Decoder> MakeSentencePieceDecoder(const SentencePieceFile& file) {
  return std::make_unique<SentencePieceDecoder>(file.add_dummy_prefix,
                                                file.remove_extra_whitespaces);
}

}  // namespace tq::tok

// WordPiece decoder: continuations join the word before them, other tokens get a space in front.
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/decoder.h"
#include "tokenizer/pattern.h"

namespace tq::tok {

using DecoderPtr = std::unique_ptr<Decoder>;

namespace {

// The spaces that splitting English put in, taken out again, in this order.
constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(*this, next);
  }
  std::string TokenBytes(std::string token) const override { return Text(std::move(token), false); }
  double Growth() const override { return 2.0; }

 private:
  std::string Text(std::string token, bool is_first) const {
    if (!is_first) {
      if (token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else {
        token.insert(0, " ");
      }
    }
    if (!cleanup_) return token;
    for (const auto& [from, to] : kCleanups) {
      token = Pattern::Literal(std::string(from)).ReplaceAll(token, to);
    }
    return token;
  }

  class Stage : public DecodeStage {
   public:
    Stage(const WordPieceDecoder& owner, DecodeStage* next) : owner_(owner), next_(next) {}
    void Text(std::string_view fragment) override { token_ += fragment; }
    void EndToken() override {
      next_->Text(owner_.Text(std::exchange(token_, {}), std::exchange(is_first_, false)));
      next_->EndToken();
    }
    void Finish() override { next_->Finish(); }

   private:
    const WordPieceDecoder& owner_;
    DecodeStage* next_;
    std::string token_;
    bool is_first_ = true;
  };

  std::string prefix_;
  bool cleanup_;
};

}  // namespace

Result<DecoderPtr> MakeWordPieceDecoder(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  std::string prefix = reader.String("prefix", "##");
  const bool cleanup = reader.Bool("cleanup", true);
  TQ_RETURN_IF_ERROR(reader.status());
  return DecoderPtr(std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup));
}

}  // namespace tq::tok

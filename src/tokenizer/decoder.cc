#include "tokenizer/decoder.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"

namespace tq::tok {

using DecoderPtr = std::unique_ptr<Decoder>;

#define DECODER(type, make) Result<DecoderPtr> make(const Json&, const std::string&);
#include "tokenizer/decoder_list.inc"
#undef DECODER

namespace {

constexpr Factory<DecoderPtr> kFactories[] = {
#define DECODER(type, make) {type, &make},
#include "tokenizer/decoder_list.inc"
#undef DECODER
};

// Tokens joined with spaces: what no decoder means.
class SpaceJoinDecoder : public Decoder {
 public:
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(next);
  }
  std::string TokenBytes(std::string token) const override { return token; }
  double Growth() const override { return 2.0; }

 private:
  class Stage : public DecodeStage {
   public:
    explicit Stage(DecodeStage* next) : next_(next) {}
    void Text(std::string_view fragment) override {
      if (std::exchange(space_waits_, false)) next_->Text(" ");
      next_->Text(fragment);
    }
    void EndToken() override {
      if (space_waits_) next_->Text(" ");
      next_->EndToken();
      space_waits_ = true;
    }
    void Finish() override { next_->Finish(); }

   private:
    DecodeStage* next_;
    bool space_waits_ = false;
  };
};

Status AppendDecoders(const Json& json, const std::string& where, DecoderChain* chain) {
  const auto type = json.is_object() ? json.find("type") : json.end();
  if (!json.is_object() || type == json.end() || *type != "Sequence") {
    TQ_ASSIGN_OR_RETURN(DecoderPtr decoder, MakeComponent<DecoderPtr>(kFactories, json, where));
    chain->push_back(std::move(decoder));
    return Status::Ok();
  }
  const auto list = json.find("decoders");
  if (list == json.end() || !list->is_array()) {
    return Corrupt(where + ": decoders: expected a list");
  }
  for (size_t i = 0; i < list->size(); ++i) {
    TQ_RETURN_IF_ERROR(AppendDecoders((*list)[i], where + "[" + std::to_string(i) + "]", chain));
  }
  return Status::Ok();
}

}  // namespace

Result<DecoderChain> MakeDecoderChain(const Json& json, const std::string& where) {
  DecoderChain chain;
  if (json.is_null()) {
    chain.push_back(std::make_unique<SpaceJoinDecoder>());
    return chain;
  }
  TQ_RETURN_IF_ERROR(AppendDecoders(json, where, &chain));
  double growth = 1.0;
  for (const DecoderPtr& decoder : chain) growth *= decoder->Growth();
  if (growth > kMaxGrowth) return Unsupported(where + ": the chain could make a text too long");
  return chain;
}

}  // namespace tq::tok

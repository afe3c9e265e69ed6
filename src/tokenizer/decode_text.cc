// Decoders that rewrite characters: Replace, Strip, Metaspace.
#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/decoder.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace tq::tok {

using DecoderPtr = std::unique_ptr<Decoder>;

namespace {

class ReplaceDecoder : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(*this, next);
  }
  std::string TokenBytes(std::string token) const override {
    return pattern_.ReplaceAll(token, content_);
  }
  double Growth() const override { return pattern_.ReplaceGrowth(content_.size()); }

 private:
  // A match may span fragments: it waits for the token's end.
  class Stage : public DecodeStage {
   public:
    Stage(const ReplaceDecoder& owner, DecodeStage* next) : owner_(owner), next_(next) {}
    void Text(std::string_view fragment) override { token_ += fragment; }
    void EndToken() override {
      next_->Text(owner_.pattern_.ReplaceAll(token_, owner_.content_));
      next_->EndToken();
      token_.clear();
    }
    void Finish() override { next_->Finish(); }

   private:
    const ReplaceDecoder& owner_;
    DecodeStage* next_;
    std::string token_;
  };

  Pattern pattern_;
  std::string content_;
};

// Takes up to `start` leading and `stop` trailing copies of one character off every token.
class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(*this, next);
  }
  std::string TokenBytes(std::string token) const override { return token; }
  double Growth() const override { return 1.0; }

 private:
  class Stage : public DecodeStage {
   public:
    Stage(const StripDecoder& owner, DecodeStage* next)
        : owner_(owner), next_(next), left_(owner.start_) {}
    void Text(std::string_view fragment) override {
      std::string out;
      for (size_t pos = 0; pos < fragment.size();) {
        const size_t begin = pos;
        NextChar(fragment, &pos);
        Char(fragment.substr(begin, pos - begin), &out);
      }
      next_->Text(out);
    }
    void EndToken() override {
      next_->EndToken();
      left_ = owner_.start_;
      held_ = 0;
    }
    void Finish() override { next_->Finish(); }

   private:
    void Char(std::string_view c, std::string* out) {
      if (c != owner_.content_) {
        left_ = 0;
        for (; held_ > 0; --held_) *out += owner_.content_;
        *out += c;
      } else if (left_ > 0) {
        --left_;
      } else if (held_ < owner_.stop_) {
        ++held_;
      } else {
        *out += c;
      }
    }

    const StripDecoder& owner_;
    DecodeStage* next_;
    int64_t left_;      // leading copies that may still go
    int64_t held_ = 0;  // copies that may turn out to be trailing
  };

  std::string content_;
  int64_t start_;
  int64_t stop_;
};

// The mark becomes a space; in the first token it goes, when the encoder put it there.
class MetaspaceDecoder : public Decoder {
 public:
  explicit MetaspaceDecoder(const MetaspaceConfig& config)
      : mark_(Pattern::Literal(config.replacement)),
        drops_first_(config.prepend != MetaspaceConfig::Prepend::kNever) {}
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(*this, next);
  }
  std::string TokenBytes(std::string token) const override { return mark_.ReplaceAll(token, " "); }
  double Growth() const override { return 1.0; }

 private:
  class Stage : public DecodeStage {
   public:
    Stage(const MetaspaceDecoder& owner, DecodeStage* next)
        : owner_(owner), next_(next), drops_(owner.drops_first_) {}
    void Text(std::string_view fragment) override {
      next_->Text(owner_.mark_.ReplaceAll(fragment, drops_ ? "" : " "));
    }
    void EndToken() override {
      drops_ = false;
      next_->EndToken();
    }
    void Finish() override { next_->Finish(); }

   private:
    const MetaspaceDecoder& owner_;
    DecodeStage* next_;
    bool drops_;
  };

  Pattern mark_;
  bool drops_first_;
};

}  // namespace

Result<DecoderPtr> MakeReplaceDecoder(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(Replacement replacement, Replacement::FromJson(json, where));
  return DecoderPtr(std::make_unique<ReplaceDecoder>(std::move(replacement.pattern),
                                                     std::move(replacement.content)));
}

Result<DecoderPtr> MakeStripDecoder(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  TQ_ASSIGN_OR_RETURN(std::string content, OneCharField(&reader, "content", " "));
  const int64_t start = reader.Int("start", 0);
  const int64_t stop = reader.Int("stop", 0);
  TQ_RETURN_IF_ERROR(reader.status());
  if (start < 0 || stop < 0) return Corrupt(where + ": start and stop must not be negative");
  return DecoderPtr(std::make_unique<StripDecoder>(std::move(content), start, stop));
}

Result<DecoderPtr> MakeMetaspaceDecoder(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(const MetaspaceConfig config, ParseMetaspace(json, where));
  return DecoderPtr(std::make_unique<MetaspaceDecoder>(config));
}

}  // namespace tq::tok

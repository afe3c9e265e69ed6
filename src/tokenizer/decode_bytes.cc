// Decoders that put bytes together: ByteLevel, ByteFallback, and Fuse.
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/byte_chars.h"
#include "tokenizer/component.h"
#include "tokenizer/decoder.h"
#include "tokenizer/unicode.h"

namespace tq::tok {

using DecoderPtr = std::unique_ptr<Decoder>;

namespace {

// All tokens are one token from here on.
class FuseDecoder : public Decoder {
 public:
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(next);
  }
  std::string TokenBytes(std::string token) const override { return token; }
  double Growth() const override { return 1.0; }

 private:
  class Stage : public DecodeStage {
   public:
    explicit Stage(DecodeStage* next) : next_(next) {}
    void Text(std::string_view fragment) override { next_->Text(fragment); }
    void EndToken() override {}
    void Finish() override {
      next_->EndToken();
      next_->Finish();
    }

   private:
    DecodeStage* next_;
  };
};

// Byte characters back to bytes, over token borders; malformed UTF-8 becomes U+FFFD.
class ByteLevelDecoder : public Decoder {
 public:
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(next);
  }
  std::string TokenBytes(std::string token) const override { return BytesOfChars(token); }
  double Growth() const override { return 3.0; }

 private:
  class Stage : public DecodeStage {
   public:
    explicit Stage(DecodeStage* next) : next_(next) {}
    void Text(std::string_view fragment) override { token_ += fragment; }
    void EndToken() override {
      std::string text;
      bytes_.Append(BytesOfChars(token_), &text);
      token_.clear();
      next_->Text(text);
    }
    void Finish() override {
      std::string text;
      bytes_.Flush(&text);
      next_->Text(text);
      next_->EndToken();
      next_->Finish();
    }

   private:
    DecodeStage* next_;
    std::string token_;
    Utf8Assembler bytes_{/*one_per_byte=*/false};
  };
};

// <0xE2> tokens: a run of them is one token of text. Each byte that belongs to no character gives
// one U+FFFD. (The reference judges a run as a whole, so that one bad byte spoils the good
// characters beside it; nothing could be shown before a run ends. We keep the good ones.)
class ByteFallbackDecoder : public Decoder {
 public:
  std::unique_ptr<DecodeStage> Start(DecodeStage* next) const override {
    return std::make_unique<Stage>(next);
  }
  std::string TokenBytes(std::string token) const override {
    const int byte = ByteOf(token);
    return byte < 0 ? token : std::string(1, static_cast<char>(byte));
  }
  double Growth() const override { return 1.0; }

 private:
  // -1 when the token is no byte.
  static int ByteOf(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    const int high = HexDigit(token[3]);
    const int low = HexDigit(token[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
  }
  static int HexDigit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  class Stage : public DecodeStage {
   public:
    explicit Stage(DecodeStage* next) : next_(next) {}
    void Text(std::string_view fragment) override { token_ += fragment; }
    void EndToken() override {
      const std::string token = std::exchange(token_, {});
      const int byte = ByteOf(token);
      if (byte >= 0) {
        const char raw = static_cast<char>(byte);
        std::string text;
        bytes_.Append({&raw, 1}, &text);
        next_->Text(text);
        in_run_ = true;
        return;
      }
      EndRun();
      next_->Text(token);
      next_->EndToken();
    }
    void Finish() override {
      EndRun();
      next_->Finish();
    }

   private:
    void EndRun() {
      if (!std::exchange(in_run_, false)) return;
      std::string text;
      bytes_.Flush(&text);
      next_->Text(text);
      next_->EndToken();
    }

    DecodeStage* next_;
    std::string token_;
    Utf8Assembler bytes_{/*one_per_byte=*/true};
    bool in_run_ = false;
  };
};

}  // namespace

Result<DecoderPtr> MakeFuseDecoder(const Json&, const std::string&) {
  return DecoderPtr(std::make_unique<FuseDecoder>());
}

Result<DecoderPtr> MakeByteLevelDecoder(const Json&, const std::string&) {
  return DecoderPtr(std::make_unique<ByteLevelDecoder>());
}

Result<DecoderPtr> MakeByteFallbackDecoder(const Json&, const std::string&) {
  return DecoderPtr(std::make_unique<ByteFallbackDecoder>());
}

}  // namespace tq::tok

// Pipeline: the Tokenizer that a tokenizer.json describes: added tokens, normalizer, pre-tokenizer,
// model, post-processor on the way in, a decoder chain on the way out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/token_model.h"
#include "tokenizer/tokenizer.h"

namespace tq::tok {

struct PipelineParts {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<TokenModel> model;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  DecoderChain decoders;
};

// A text to encode, well-formed.
struct CleanText {
  std::string text;
  std::vector<TextSpan> plain;  // EncodeOptions
};

class Pipeline : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts);

  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options) const override;
  std::string Decode(std::span<const int32_t> ids, bool skip_special) const override;
  std::unique_ptr<DecodeStream> StartDecode(bool skip_special) const override;
  std::string TokenBytes(int32_t id) const override;
  int32_t vocab_size() const override { return vocab_size_; }
  bool IsSpecial(int32_t id) const override;
  std::string_view TokenText(int32_t id) const override;
  int32_t TokenId(std::string_view content) const override;

  // What the decoders start from.
  std::string_view DecodedText(int32_t id) const;

 private:
  void EncodeStretch(const CleanText& clean, const TextPart& stretch, bool skip_special,
                     ModelSession* session, std::vector<int32_t>* ids) const;

  PipelineParts parts_;
  int32_t vocab_size_;
};

// tokenizer.json and tokenizer_config.json (may be empty) -> parts.
// Errors: kCorrupt with the place, kUnsupported naming the construct.
Result<PipelineParts> LoadPipelineParts(std::string_view tokenizer_json,
                                        std::string_view tokenizer_config_json);
// The first of tokenizer.json, tiktoken.model, tokenizer.model. Errors also: kNotFound.
Result<PipelineParts> LoadPipelineParts(const TokenizerFiles& files);

}  // namespace tq::tok

// Tokenizer: text <-> ids, exactly as the model was trained. Immutable after load; any thread.
// Built from tokenizer.json (Hugging Face), tiktoken.model (Kimi) or tokenizer.model
// (SentencePiece); other containers translate to the first one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text_span.h"

namespace tq {

struct EncodeOptions {
  bool add_special_tokens = false;  // what the post-processor adds (BOS ...)
  bool parse_special = true;        // false: text that looks like a special token stays text
  // Parts of the text where it stays text even so; sorted, apart, cut at characters.
  std::span<const TextSpan> plain = {};
};

// Ids -> text as they come. Pieces are whole characters; they add up to Decode of all ids.
class DecodeStream {
 public:
  virtual ~DecodeStream() = default;
  virtual void Push(int32_t id, std::string* out) = 0;  // appends to *out
  virtual void Finish(std::string* out) = 0;            // once, at the end
};

// The content of the files of a checkpoint that say how text is cut; "" where there is none.
struct TokenizerFiles {
  std::string_view tokenizer_json = {};
  std::string_view tiktoken_model = {};
  std::string_view tokenizer_model = {};
  std::string_view tokenizer_config_json = {};
  std::string_view added_tokens_json = {};  // not for tokenizer.json, which has them
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // tokenizer_json: content of tokenizer.json; tokenizer_config_json may be empty.
  // Errors: kCorrupt (bad JSON, ids that collide), kUnsupported naming the construct.
  static Result<std::unique_ptr<Tokenizer>> Load(std::string_view tokenizer_json,
                                                 std::string_view tokenizer_config_json);

  // From the first of tokenizer.json, tiktoken.model, tokenizer.model.
  // Errors: those above, kNotFound when there is none of the three.
  static Result<std::unique_ptr<Tokenizer>> Load(const TokenizerFiles& files);

  // Bytes that are not UTF-8: every maximal malformed sequence becomes one U+FFFD first.
  virtual std::vector<int32_t> Encode(std::string_view text,
                                      const EncodeOptions& options) const = 0;
  // UTF-8, bytes that are no character as U+FFFD; unknown ids give nothing. skip_special leaves
  // special tokens out.
  virtual std::string Decode(std::span<const int32_t> ids, bool skip_special) const = 0;
  // The stream must not outlive the tokenizer. One thread.
  virtual std::unique_ptr<DecodeStream> StartDecode(bool skip_special) const = 0;
  // The bytes that a token stands for inside a text (" the", half of an emoji), for log
  // probabilities and grammars. Not for concatenation: a decoder may drop a leading space.
  virtual std::string TokenBytes(int32_t id) const = 0;

  virtual int32_t vocab_size() const = 0;  // 1 + the largest id
  virtual bool IsSpecial(int32_t id) const = 0;
  // Content of a token as written in the file ("<|im_end|>"), "" when there is none.
  virtual std::string_view TokenText(int32_t id) const = 0;
  virtual int32_t TokenId(std::string_view content) const = 0;  // -1 when there is none
};

// Turns ids into text as they come, never emitting half a character. The concatenation of all that
// Push and Finish return equals Decode(all ids). At most three bytes of a character, or a token
// that a decoder has to see whole, are held back.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special);
  std::string Push(int32_t id);
  std::string Finish();

 private:
  std::unique_ptr<DecodeStream> stream_;
};

}  // namespace tq

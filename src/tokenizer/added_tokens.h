// AddedTokens: tokens that are cut out of a text as a whole, before (or, "normalized", after) the
// normalizer. Filled once, then constant; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/text_span.h"
#include "tokenizer/byte_trie.h"
#include "tokenizer/flat_map.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/vocabulary.h"

namespace tq::tok {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // only between non-word characters
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for in the normalized text
  bool special = false;
  bool from_document = false;  // tokenizer.json lists it
  // What the decoder gets: the content, normalized when it is looked for in that form. Set by
  // Index unless given.
  std::string decoded;
};

// An object with the fields above, all but content optional. Errors: kCorrupt.
Result<AddedToken> ParseAddedToken(const Json& json, const std::string& where);

// The cut of a text: added tokens (id >= 0) and the stretches between them (id -1), none empty.
struct TextPart {
  size_t begin;
  size_t end;
  int32_t id;
};

// Where special tokens are not looked for.
struct SkipSpecial {
  bool everywhere = false;
  std::span<const TextSpan> spans = {};  // sorted
  bool Skips(size_t begin, size_t end) const;
};

class AddedTokens {
 public:
  // A token that is there already gets new flags. Errors: kCorrupt when its id contradicts what the
  // model's vocabulary or an earlier token says.
  Status Add(AddedToken token, const Vocabulary& model, const std::string& where);
  // All tokens so far are cut out before the normalizer, whatever they say.
  void LookInRawText();
  // Call once after the last Add. normalizer may be null.
  void Index(const Normalizer* normalizer);

  const AddedToken* Find(int32_t id) const;  // null when there is none
  const AddedToken* Find(std::string_view content) const;
  int32_t max_id() const { return ids_.max_id(); }

  // Special tokens stay text where `skip` says so.
  std::vector<TextPart> CutRaw(std::string_view text, const SkipSpecial& skip) const;
  // raw: the text before the normalizer, which skip.spans belong to. The n-th special token of one
  // is the n-th of the other; if they have not the same number, skip.spans cannot be followed.
  std::vector<TextPart> CutNormalized(std::string_view text, std::string_view raw,
                                      const SkipSpecial& skip) const;

 private:
  std::vector<TextPart> Cut(const ByteTrie& trie, std::string_view text,
                            const SkipSpecial& skip) const;
  std::vector<TextSpan> SpecialTokens(const ByteTrie& trie, std::string_view text) const;

  std::vector<AddedToken> tokens_;
  Vocabulary ids_;
  FlatMap index_of_id_;
  ByteTrie raw_;  // values are indexes of tokens_
  ByteTrie normalized_;
  ByteTrie raw_of_normalized_;  // as they are written
};

}  // namespace tq::tok

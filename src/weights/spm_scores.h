// What GGUF says of a SentencePiece BPE tokenizer, from a tokenizer.json: scores in place of
// merges, and whether a space is put in front of a text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tq {

using TextPair = std::pair<std::string, std::string>;

struct SpmVocab {
  std::span<const std::string> tokens;
  std::span<const int32_t> types;  // GgufTokenType
  std::span<const TextPair> merges;
};

struct SpmScoreList {
  std::vector<float> scores;  // one per token
  // Pairs that these scores merge and no merge of the list does: where one meets them in a text,
  // ids differ. A list that comes from a SentencePiece model has none.
  int64_t extra_merges = 0;
};

// Scores that merge pieces in the order of the merges. Errors: kUnsupported when no scores do,
// kCorrupt (a merge that gives no token).
Result<SpmScoreList> SpmScores(const SpmVocab& vocab, const std::string& where);

// Errors: kUnsupported for a normalizer and pre_tokenizer that do more than mark spaces.
Result<bool> SpmSpacePrefix(const Json& tokenizer, const std::string& where);

}  // namespace tq

#include "weights/spm_scores.h"

#include <set>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "weights/gguf_vocab.h"
#include "weights/json_member.h"
#include "weights/quote.h"
#include "weights/spm_merges.h"

namespace tq {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

// Pieces are merged by score: those of the earliest merges are the best.
Result<std::vector<float>> ScoresOf(const SpmVocab& vocab, const std::string& where) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) ids.emplace(vocab.tokens[i], i);
  constexpr float kNone = 1.0f;
  std::vector<float> scores(vocab.tokens.size(), kNone);
  float next = 0.0f;
  for (const auto& [left, right] : vocab.merges) {
    const auto piece = ids.find(left + right);
    if (piece == ids.end()) {
      return Corrupt(where + ": merge of " + Quoted(left) + " and " + Quoted(right) +
                     " gives no token");
    }
    float& score = scores[piece->second];
    if (score == kNone) score = next--;
  }
  for (float& score : scores) {
    if (score == kNone) score = next--;
  }
  return scores;
}

}  // namespace

Result<SpmScoreList> SpmScores(const SpmVocab& vocab, const std::string& where) {
  SpmScoreList out;
  TQ_ASSIGN_OR_RETURN(out.scores, ScoresOf(vocab, where));
  std::vector<bool> usable(vocab.tokens.size());
  std::unordered_set<std::string> user_defined;
  for (size_t i = 0; i < usable.size(); ++i) {
    const auto type = static_cast<GgufTokenType>(vocab.types[i]);
    usable[i] = type == GgufTokenType::kNormal || type == GgufTokenType::kUserDefined ||
                type == GgufTokenType::kUnused;
    if (type == GgufTokenType::kUserDefined) user_defined.insert(vocab.tokens[i]);
  }
  // What the list merges, and what the scores merge of it; each as the pieces that come out.
  std::vector<std::string> wanted;
  std::vector<std::string> derived;
  std::set<TextPair> listed;
  for (const TextPair& merge : vocab.merges) {
    std::string piece = merge.first + merge.second;
    // User-defined tokens are cut out of a text before anything is merged.
    if (user_defined.contains(piece)) continue;
    wanted.push_back(std::move(piece));
    listed.insert(merge);
  }
  const std::vector<std::string_view> pieces(vocab.tokens.begin(), vocab.tokens.end());
  for (const Merge& merge : DeriveSpmMerges(pieces, out.scores, usable)) {
    const TextPair pair(merge.first, merge.second);
    if (listed.contains(pair)) {
      derived.push_back(pair.first + pair.second);
    } else if (!user_defined.contains(pair.first + pair.second)) {
      ++out.extra_merges;
    }
  }
  if (wanted == derived) return out;
  return Unsupported(where +
                     ": its merges do not follow from one score per token, as GGUF's "
                     "SentencePiece tokenizer wants");
}

Result<bool> SpmSpacePrefix(const Json& tokenizer, const std::string& where) {
  const std::string mark(kSpaceMark);
  const Json space = {{"String", " "}};
  const Json replace = {{"type", "Replace"}, {"pattern", space}, {"content", mark}};
  const Json prepend = {{"type", "Prepend"}, {"prepend", mark}};
  const Json& normalizer = Member(tokenizer, "normalizer");
  const Json& pre = Member(tokenizer, "pre_tokenizer");
  const std::string pre_type = TextOf(Member(pre, "type"));
  // After the replacement there is no space left to split at.
  const bool no_pre = pre.is_null() || (pre_type == "Split" && Member(pre, "pattern") == space);
  if (no_pre && normalizer == replace) return false;
  if (no_pre && TextOf(Member(normalizer, "type")) == "Sequence" &&
      Member(normalizer, "normalizers") == Json::array({prepend, replace})) {
    return true;
  }
  const Json& split = Member(pre, "split");
  if (normalizer.is_null() && pre_type == "Metaspace" && split.is_boolean() && !IsTrue(split)) {
    const std::string scheme = TextOf(Member(pre, "prepend_scheme"));
    if (scheme == "never") return false;
    if (scheme == "first" || scheme == "always") return true;
  }
  return Unsupported(where +
                     ": its normalizer and pre_tokenizer do more than mark spaces, which GGUF's "
                     "SentencePiece tokenizer cannot");
}

}  // namespace tq

#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

size_t TrailingSpaceStart(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t start = PreviousCharStart(text, end);
    size_t pos = start;
    if (!IsWhiteSpace(NextChar(text, &pos))) break;
    end = start;
  }
  return end;
}

size_t LeadingSpaceEnd(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    size_t pos = begin;
    if (!IsWhiteSpace(NextChar(text, &pos))) break;
    begin = pos;
  }
  return begin;
}

bool IsSingleWord(std::string_view text, size_t begin, size_t end) {
  size_t pos = begin == 0 ? 0 : PreviousCharStart(text, begin);
  if (begin > 0 && IsWordChar(NextChar(text, &pos))) return false;
  pos = end;
  return end == text.size() || !IsWordChar(NextChar(text, &pos));
}

}  // namespace

Result<AddedToken> ParseAddedToken(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  AddedToken token;
  token.content = reader.String("content", "");
  token.single_word = reader.Bool("single_word", false);
  token.lstrip = reader.Bool("lstrip", false);
  token.rstrip = reader.Bool("rstrip", false);
  token.special = reader.Bool("special", false);
  token.normalized = reader.Bool("normalized", !token.special);
  TQ_RETURN_IF_ERROR(reader.status());
  return token;
}

Status AddedTokens::Add(AddedToken token, const Vocabulary& model, const std::string& where) {
  if (token.content.empty()) return Status::Ok();
  const AddedToken* known = Find(token.content);
  const int32_t expected = known != nullptr ? known->id : model.Id(token.content);
  if (expected >= 0 && expected != token.id) {
    return Corrupt(where + ": " + Quoted(token.content) + " has id " + std::to_string(expected) +
                   " elsewhere in the file, found " + std::to_string(token.id));
  }
  if (known != nullptr) {
    token.from_document |= known->from_document;
    tokens_[static_cast<size_t>(known - tokens_.data())] = std::move(token);
    return Status::Ok();
  }
  if (expected < 0 && model.Contains(token.id)) {
    return Corrupt(where + ": id " + std::to_string(token.id) + " belongs to both " +
                   Quoted(model.Content(token.id)) + " and " + Quoted(token.content));
  }
  TQ_RETURN_IF_ERROR(ids_.Add(token.content, token.id, where));
  index_of_id_.Set(static_cast<uint64_t>(token.id), static_cast<uint32_t>(tokens_.size()));
  tokens_.push_back(std::move(token));
  return Status::Ok();
}

void AddedTokens::Index(const Normalizer* normalizer) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    AddedToken& token = tokens_[i];
    if (token.decoded.empty()) token.decoded = token.content;
    if (!token.normalized) {
      raw_.Insert(token.content, static_cast<uint32_t>(i));
      continue;
    }
    raw_of_normalized_.Insert(token.content, static_cast<uint32_t>(i));
    bool at_start = true;
    if (normalizer != nullptr) normalizer->Apply(&token.decoded, &at_start);
    // Of two tokens with one normalized form the first wins.
    normalized_.Insert(token.decoded, static_cast<uint32_t>(i));
  }
}

void AddedTokens::LookInRawText() {
  for (AddedToken& token : tokens_) token.normalized = false;
}

const AddedToken* AddedTokens::Find(int32_t id) const {
  const uint32_t index = id < 0 ? FlatMap::kNone : index_of_id_.Get(static_cast<uint64_t>(id));
  return index == FlatMap::kNone ? nullptr : &tokens_[index];
}

const AddedToken* AddedTokens::Find(std::string_view content) const {
  return Find(ids_.Id(content));
}

bool SkipSpecial::Skips(size_t begin, size_t end) const {
  if (everywhere) return true;
  // The first span that ends behind `begin`.
  const auto span = std::upper_bound(
      spans.begin(), spans.end(), begin,
      [](size_t position, const TextSpan& candidate) { return position < candidate.end; });
  return span != spans.end() && span->begin < end;
}

std::vector<TextPart> AddedTokens::CutRaw(std::string_view text, const SkipSpecial& skip) const {
  return Cut(raw_, text, skip);
}

std::vector<TextPart> AddedTokens::CutNormalized(std::string_view text, std::string_view raw,
                                                 const SkipSpecial& skip) const {
  if (skip.everywhere || skip.spans.empty()) return Cut(normalized_, text, skip);
  const std::vector<TextSpan> before = SpecialTokens(raw_of_normalized_, raw);
  const std::vector<TextSpan> after = SpecialTokens(normalized_, text);
  std::vector<TextSpan> spans;
  if (before.size() == after.size()) {
    for (size_t i = 0; i < before.size(); ++i) {
      if (skip.Skips(before[i].begin, before[i].end)) spans.push_back(after[i]);
    }
  }
  return Cut(normalized_, text, {.everywhere = false, .spans = spans});
}

std::vector<TextSpan> AddedTokens::SpecialTokens(const ByteTrie& trie,
                                                 std::string_view text) const {
  std::vector<TextSpan> found;
  for (size_t pos = 0; pos < text.size();) {
    size_t length = 0;
    const uint32_t index = trie.Longest(text.substr(pos), &length);
    if (index != FlatMap::kNone && tokens_[index].special) found.push_back({pos, pos + length});
    pos += index == FlatMap::kNone ? 1 : length;
  }
  return found;
}

std::vector<TextPart> AddedTokens::Cut(const ByteTrie& trie, std::string_view text,
                                       const SkipSpecial& skip) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  for (size_t pos = 0; pos < text.size();) {
    size_t length = 0;
    const uint32_t index = trie.Longest(text.substr(pos), &length);
    if (index == FlatMap::kNone) {
      ++pos;
      continue;
    }
    const AddedToken& token = tokens_[index];
    size_t begin = pos;
    size_t end = pos + length;
    pos = end;
    if (token.special && skip.Skips(begin, end)) continue;
    if (token.single_word && !IsSingleWord(text, begin, end)) continue;
    // Spaces that the previous token took stay with it.
    if (token.lstrip) begin = std::max(TrailingSpaceStart(text, begin), done);
    if (token.rstrip) end = LeadingSpaceEnd(text, end);
    if (begin >= end) continue;
    if (done < begin) parts.push_back({done, begin, -1});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), -1});
  return parts;
}

}  // namespace tq::tok

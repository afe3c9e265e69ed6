// What a Split or Replace looks for, and how a text is cut at its matches. Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "tokenizer/fast_regex.h"
#include "tokenizer/regex.h"

namespace tq::tok {

// A part of a text: a match, or what lies between two.
struct Chunk {
  size_t begin;
  size_t end;
  bool is_match;
};

class Pattern {
 public:
  using Predicate = bool (*)(char32_t);

  // {"String": ...} or {"Regex": ...}. Errors: kCorrupt, kUnsupported.
  static Result<Pattern> FromJson(const Json& json, const std::string& where);
  static Result<Pattern> FromRegex(std::string_view regex, const std::string& where);
  static Pattern Literal(std::string text);      // text is not empty
  static Pattern EachChar(Predicate predicate);  // each such character is a match

  // The chunks cover `text` in order, without gaps. An empty text has one empty chunk.
  void Find(std::string_view text, std::vector<Chunk>* chunks) const;
  std::string ReplaceAll(std::string_view text, std::string_view content) const;
  // How many times longer a text may get when every match becomes content_bytes bytes.
  double ReplaceGrowth(size_t content_bytes) const;

 private:
  Pattern() = default;
  std::shared_ptr<const Regex> regex_;
  std::shared_ptr<const FastRegex> fast_regex_;  // null, or finds the same as regex_
  std::string literal_;
  Predicate predicate_ = nullptr;
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
Result<SplitBehavior> ParseSplitBehavior(std::string_view name, const std::string& where);

// In: chunks that cover a text. Out: the pieces that stay, in order (is_match has no meaning then).
void ApplySplitBehavior(SplitBehavior behavior, bool invert, std::vector<Chunk>* chunks);

// What a Replace normalizer and a Replace decoder say: {"pattern": ..., "content": ...}.
struct Replacement {
  Pattern pattern;
  std::string content;
  // Errors: kCorrupt (no pattern, wrong types), and those of Pattern::FromJson.
  static Result<Replacement> FromJson(const Json& json, const std::string& where);
};

}  // namespace tq::tok

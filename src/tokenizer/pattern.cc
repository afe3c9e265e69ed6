#include "tokenizer/pattern.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

// Calls match(begin, end) for each occurrence, in order.
template <typename OnMatch>
void ForEachOccurrence(std::string_view text, std::string_view literal, OnMatch&& on_match) {
  size_t at = text.find(literal);
  while (at != std::string_view::npos) {
    on_match(at, at + literal.size());
    at = text.find(literal, at + literal.size());
  }
}

}  // namespace

Result<Pattern> Pattern::FromJson(const Json& json, const std::string& where) {
  if (!json.is_object() || json.size() != 1 || !json.begin()->is_string()) {
    return Corrupt(where + ": expected {\"String\": text} or {\"Regex\": text}");
  }
  const std::string& text = json.begin()->get_ref<const std::string&>();
  if (json.begin().key() == "Regex") return FromRegex(text, where);
  if (json.begin().key() != "String") {
    return Unsupported(where + ": pattern kind " + Quoted(json.begin().key()));
  }
  if (text.empty()) return Corrupt(where + ": expected a text to look for, found an empty one");
  return Literal(text);
}

Result<Pattern> Pattern::FromRegex(std::string_view regex, const std::string& where) {
  Pattern pattern;
  TQ_ASSIGN_OR_RETURN(pattern.regex_, Regex::Compile(regex, where));
  pattern.fast_regex_ = FastRegex::Compile(regex);
  return pattern;
}

Pattern Pattern::Literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Pattern Pattern::EachChar(Predicate predicate) {
  Pattern pattern;
  pattern.predicate_ = predicate;
  return pattern;
}

void Pattern::Find(std::string_view text, std::vector<Chunk>* chunks) const {
  chunks->clear();
  if (text.empty()) {
    chunks->push_back({0, 0, false});
    return;
  }
  size_t done = 0;
  const auto on_match = [&](size_t begin, size_t end) {
    if (begin != done) chunks->push_back({done, begin, false});
    chunks->push_back({begin, end, true});
    done = end;
  };
  size_t begin = 0;
  size_t end = 0;
  if (fast_regex_ != nullptr) {
    FastScan scan(*fast_regex_, text);
    while (scan.Next(&begin, &end)) on_match(begin, end);
  } else if (regex_ != nullptr) {
    RegexScan scan(*regex_, text);
    while (scan.Next(&begin, &end)) on_match(begin, end);
  } else if (predicate_ != nullptr) {
    for (size_t pos = 0; pos < text.size();) {
      begin = pos;
      if (predicate_(NextChar(text, &pos))) on_match(begin, pos);
    }
  } else {
    ForEachOccurrence(text, literal_, on_match);
  }
  if (done != text.size()) chunks->push_back({done, text.size(), false});
}

std::string Pattern::ReplaceAll(std::string_view text, std::string_view content) const {
  std::vector<Chunk> chunks;
  Find(text, &chunks);
  std::string out;
  out.reserve(text.size());
  for (const Chunk& chunk : chunks) {
    out.append(chunk.is_match ? content : text.substr(chunk.begin, chunk.end - chunk.begin));
  }
  return out;
}

double Pattern::ReplaceGrowth(size_t content_bytes) const {
  const auto content = static_cast<double>(content_bytes);
  if (fast_regex_ != nullptr && fast_regex_->min_match_chars() > 0) {
    return std::max(1.0, content / static_cast<double>(fast_regex_->min_match_chars()));
  }
  // A regex may match the empty text before every byte.
  if (regex_ != nullptr) return 1.0 + content;
  const double match = predicate_ != nullptr ? 1.0 : static_cast<double>(literal_.size());
  return std::max(1.0, content / match);
}

Result<SplitBehavior> ParseSplitBehavior(std::string_view name, const std::string& where) {
  static constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  };
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  return Unsupported(where + ": split behavior " + Quoted(name));
}

namespace {

// Joins neighbours into one piece when joins(previous is a match, current is a match).
template <typename Joins>
void JoinForward(std::vector<Chunk>* chunks, Joins joins) {
  size_t kept = 0;
  bool previous = false;
  for (size_t i = 0; i < chunks->size(); ++i) {
    const Chunk chunk = (*chunks)[i];
    if (kept > 0 && joins(previous, chunk.is_match)) {
      (*chunks)[kept - 1].end = chunk.end;
    } else {
      (*chunks)[kept++] = chunk;
    }
    previous = chunk.is_match;
  }
  chunks->resize(kept);
}

}  // namespace

void ApplySplitBehavior(SplitBehavior behavior, bool invert, std::vector<Chunk>* chunks) {
  if (invert) {
    for (Chunk& chunk : *chunks) chunk.is_match = !chunk.is_match;
  }
  const auto match_after_other = [](bool previous, bool current) { return current && !previous; };
  switch (behavior) {
    case SplitBehavior::kIsolated:
      break;
    case SplitBehavior::kRemoved:
      std::erase_if(*chunks, [](const Chunk& chunk) { return chunk.is_match; });
      break;
    case SplitBehavior::kContiguous:
      JoinForward(chunks, [](bool previous, bool current) { return previous == current; });
      break;
    case SplitBehavior::kMergedWithPrevious:
      JoinForward(chunks, match_after_other);
      break;
    case SplitBehavior::kMergedWithNext: {
      // The same walk from the other end.
      std::reverse(chunks->begin(), chunks->end());
      for (Chunk& chunk : *chunks) std::swap(chunk.begin, chunk.end);
      JoinForward(chunks, match_after_other);
      for (Chunk& chunk : *chunks) std::swap(chunk.begin, chunk.end);
      std::reverse(chunks->begin(), chunks->end());
      break;
    }
  }
}

Result<Replacement> Replacement::FromJson(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const Json* pattern_json = reader.Raw("pattern");
  std::string content = reader.String("content", "");
  TQ_RETURN_IF_ERROR(reader.status());
  if (pattern_json == nullptr) return Corrupt(where + ": pattern is missing");
  TQ_ASSIGN_OR_RETURN(Pattern pattern, Pattern::FromJson(*pattern_json, where + ".pattern"));
  return Replacement{std::move(pattern), std::move(content)};
}

}  // namespace tq::tok

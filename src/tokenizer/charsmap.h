// Charsmap: the compiled replacement table of SentencePiece ("nmt_nfkc" and its kin): a
// double-array trie over byte strings whose values are offsets into a list of NUL-terminated texts.
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tq::tok {

class Charsmap {
 public:
  // An empty blob is a table without entries. Errors: kCorrupt (sizes that lie, texts that are not
  // UTF-8).
  static Result<Charsmap> Parse(std::string_view blob, const std::string& where);

  struct Match {
    size_t length;             // bytes of the text that are replaced
    std::string_view content;  // lives as long as the table
  };
  // The entries that `text` starts with: the shortest, or the longest.
  std::optional<Match> Shortest(std::string_view text) const { return Find(text, true); }
  std::optional<Match> Longest(std::string_view text) const { return Find(text, false); }
  // Bytes of the longest replacement.
  size_t max_content_bytes() const { return max_content_bytes_; }

 private:
  std::optional<Match> Find(std::string_view text, bool shortest) const;
  std::string_view ContentAt(size_t offset) const;

  std::vector<uint32_t> units_;
  std::string contents_;
  size_t max_content_bytes_ = 0;
};

}  // namespace tq::tok

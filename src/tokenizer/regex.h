// Regular expressions (oniguruma, the engine that the reference tokenizers use). The only file pair
// that sees the library. A Regex is immutable and used from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/char_set.h"

namespace tq::tok {

class Regex {
 public:
  // Errors: kCorrupt when the pattern does not compile; `where` names its place.
  static Result<std::shared_ptr<const Regex>> Compile(std::string_view pattern,
                                                      std::string_view where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

 private:
  friend class RegexScan;
  struct Handle;
  explicit Regex(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

// The matches of a regex in one text, leftmost first, not overlapping; an empty match never follows
// the previous one directly. A pattern that backtracks without end stops matching (the rest of the
// text has no match) instead of hanging.
class RegexScan {
 public:
  RegexScan(const Regex& regex, std::string_view text);
  ~RegexScan();
  RegexScan(const RegexScan&) = delete;
  RegexScan& operator=(const RegexScan&) = delete;
  bool Next(size_t* begin, size_t* end);

 private:
  struct State;
  const Regex& regex_;
  std::string_view text_;
  std::unique_ptr<State> state_;
  size_t from_ = 0;
  size_t last_end_ = std::string_view::npos;
};

// The code points of \p{name}, sorted. False: the library knows no such property.
bool AppendPropertyRanges(std::string_view name, std::vector<CharSet::Range>* ranges);

}  // namespace tq::tok

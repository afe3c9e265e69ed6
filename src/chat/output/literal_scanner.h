// LiteralScanner: reads one value in the notation of Python or of the Gemma models, byte by byte,
// and writes it as JSON. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/output/json_scanner.h"
#include "chat/output/mark_matcher.h"

namespace tq {

// Python: 'a', "a", """a""", True, None, 1_000, lists, tuples (as arrays), dicts.
// Gemma: quote a quote, bare keys and words, true, null, lists, {key:value}.
class LiteralScanner {
 public:
  // gemma_quote: what quotes strings; empty: Python.
  explicit LiteralScanner(std::string_view gemma_quote = {});

  void Reset();
  // Appends JSON to out.
  ScanStep Push(char c, std::string& out);
  // Whether a value inside of the outermost brackets has begun and is one.
  bool has_inner_value() const { return has_inner_value_; }

 private:
  enum class State : uint8_t {
    kValue,
    kWord,
    kQuote,     // of Python: one quote was read, is it three?
    kQuoteTwo,  // two of them
    kString,
    kEscape,
    kHex,
    kMark,  // in the middle of gemma_quote that opens a string
    kColon,
    kAfter,
  };
  struct Level {
    char open = 0;
    bool is_empty = true;
    bool expects_key = false;
  };
  bool is_gemma() const { return !gemma_quote_.empty(); }
  bool expects_key() const { return !nested_.empty() && nested_.back().expects_key; }
  void BeginItem(std::string& out);
  ScanStep BeginValue(char c, std::string& out);
  ScanStep PushWord(char c, std::string& out);
  ScanStep EndWord(char c, std::string& out);
  ScanStep PushString(char c, std::string& out);
  ScanStep PushEscape(char c, std::string& out);
  ScanStep PushAfter(char c, std::string& out);
  ScanStep Close(char c, std::string& out);
  ScanStep EndValue();
  ScanStep EndString(std::string& out);

  std::string_view gemma_quote_;
  MarkMatcher string_end_;
  State state_ = State::kValue;
  std::vector<Level> nested_;
  bool has_inner_value_ = false;
  std::string word_;
  size_t mark_read_ = 0;
  char quote_ = 0;
  bool is_triple_ = false;
  int quotes_ = 0;  // at the end of a triple string
  char hex_kind_ = 0;
  std::string hex_;
  EscapedPairs pairs_;
};

// Whether all of `text`, but for white space around it, is one Python value; `json` gets it.
bool IsLiteral(std::string_view text, std::string* json);

// The JSON of a bare word of Python: a number, True, None; empty: it is none.
std::string PythonWordJson(std::string_view word);

}  // namespace tq

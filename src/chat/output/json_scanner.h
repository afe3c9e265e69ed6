// JsonScanner: checks one JSON value that comes byte by byte, and passes it on as it is written.
// What JSON or UTF-8 forbid in strings and models write all the same is mended: raw control
// characters become escapes, halves of surrogate pairs U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tq {

enum class ScanStep : uint8_t {
  kMore,
  kEnd,        // the value ends with this byte
  kEndBefore,  // it ended before this byte, which was not taken
  kBad,        // no JSON; the byte was not taken
};

// Escapes of UTF-16: a half without its other one is no character and becomes U+FFFD.
class EscapedPairs {
 public:
  // `escape`: of this code, "\uXXXX".
  void Add(uint32_t code, std::string_view escape, std::string& out);
  // Something else follows.
  void Flush(std::string& out);

 private:
  std::string high_;  // a first half that waits for its second
};

class JsonScanner {
 public:
  void Reset();
  // Appends the checked bytes to out.
  ScanStep Push(char c, std::string& out);
  // Whether a value inside of the outermost object or array has begun.
  bool has_inner_value() const { return has_inner_value_; }

 private:
  enum class State : uint8_t {
    kValue,
    kFirstValue,  // behind '['
    kFirstKey,    // behind '{'
    kKey,
    kColon,
    kAfter,
    kString,
    kEscape,
    kHex,
    kWord,
    kMinus,
    kZero,
    kInteger,
    kDot,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
  };
  ScanStep BeginValue(char c, std::string& out);
  ScanStep PushString(char c, std::string& out);
  ScanStep PushNumber(char c, std::string& out);
  ScanStep Close(char c, std::string& out);
  ScanStep EndValue();
  ScanStep Take(char c, State next, std::string& out);
  void EndHex(std::string& out);

  State state_ = State::kValue;
  std::vector<char> nested_;
  bool is_key_ = false;
  bool has_inner_value_ = false;
  std::string escape_;  // the one that is being read
  EscapedPairs pairs_;
  std::string_view word_;  // what is left of true, false or null
};

// Whether all of `text`, but for white space around it, is one JSON value; `json` gets it.
bool IsJsonValue(std::string_view text, std::string* json);

// White space as JSON has it.
inline bool IsJsonSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Whether text is one value of the scanner's notation, and blanks behind it. json gets the value.
template <typename Scanner>
bool IsWholeValue(Scanner scanner, std::string_view text, std::string* json) {
  json->clear();
  size_t at = 0;
  ScanStep step = ScanStep::kMore;
  // A line feed ends numbers and words.
  for (; at <= text.size() && step == ScanStep::kMore; ++at) {
    step = scanner.Push(at < text.size() ? text[at] : '\n', *json);
  }
  if (step == ScanStep::kEndBefore) --at;
  if (step == ScanStep::kMore || step == ScanStep::kBad) return false;
  for (; at < text.size(); ++at) {
    if (!IsJsonSpace(text[at])) return false;
  }
  return true;
}

// Appends the inside of a JSON string that means `text`.
void AppendEscaped(std::string_view text, std::string& out);
// With the quotes.
std::string JsonString(std::string_view text);

}  // namespace tq

// CallReader: reads calls of one shape, byte by byte, into a CallSink. A region of calls
// (call_region.h) holds one or several of them. Private to this folder.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "chat/output/argument_types.h"
#include "chat/output/call_sink.h"
#include "chat/output/json_scanner.h"
#include "chat/output/literal_scanner.h"
#include "chat/output/mark_matcher.h"
#include "chat/output/tool_format.h"

namespace tq {

enum class ReadStep : uint8_t {
  kMore,
  kEnd,        // the call (or list of calls) ends with this byte
  kEndBefore,  // it ended before this byte, which was not taken
  kClosed,     // so does the region: its closing mark was read
  kBad,        // no call; the byte was not taken
};

// What all readers need. Borrowed.
struct ReaderContext {
  const ToolFormat& format;
  const ToolTypes& types;
  CallSink& sink;
  // Names that are no offered tool make no call: for regions without a mark.
  bool only_known_names = false;

  // false: no call can have this name.
  bool Begin(std::string name, std::string id) const;
  // Ends the open call, if it is known to be one.
  void EndGivenOut(bool complete) const {
    if (sink.is_open() && sink.open_is_certain()) sink.End(complete);
  }
};

class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual ReadStep Push(char c) = 0;
  // Ends the call that was given out but did not end: at the end of the text, or (false) where it
  // turned out to be malformed.
  virtual void Finish(bool at_end) = 0;
};

// {"name": ..., "arguments": {...}} with any further keys, or a list of such objects.
class JsonCallReader : public CallReader {
 public:
  explicit JsonCallReader(const ReaderContext& context) : context_(context) {}
  ReadStep Push(char c) override;
  void Finish(bool at_end) override;

 private:
  enum class State : uint8_t {
    kStart,
    kItem,       // in a list: a call or its end
    kAfterItem,  // in a list: a comma or its end
    kKeyOrEnd,
    kKey,
    kKeyText,
    kColon,
    kValue,
    kText,     // a string that is wanted: name, id, or arguments as text
    kSkipped,  // a value that is not
    kArguments,
    kAfterValue,
  };
  enum class Key : uint8_t { kOther, kName, kId, kArguments, kFunction };
  ReadStep BeginCall();
  ReadStep BeginValue(char c);
  ReadStep PushText(char c);
  ReadStep PushSkipped(char c);
  ReadStep PushArguments(char c);
  ReadStep EndText();
  ReadStep EndObject();
  bool TakeArguments(std::string_view json);
  void FlushArguments(bool whole);

  ReaderContext context_;
  State state_ = State::kStart;
  Key key_ = Key::kOther;
  bool in_list_ = false;
  int depth_ = 0;  // 2: inside of "function": {...}
  JsonScanner scanner_;
  std::string scanned_;  // what the scanner passed
  std::string name_;
  std::string id_;
  std::string arguments_;  // read before the name was
  bool has_arguments_ = false;
  bool arguments_end_ = false;
  bool has_begun_ = false;
};

// A name, and arguments as JSON or in tags.
class NamedCallReader : public CallReader {
 public:
  explicit NamedCallReader(const ReaderContext& context);
  // The name was read elsewhere, the arguments follow; none at all are {}.
  void StartArguments(std::string name);
  ReadStep Push(char c) override;
  void Finish(bool at_end) override;

 private:
  enum class State : uint8_t {
    kName,
    kId,  // behind id_open
    kBeforeArguments,
    kArguments,  // JSON
    kNameAttributes,
    kParams,  // between tags
    kKey,
    kKeyAttributes,
    kBeforeValue,
    kValue,
    kPlain,  // key=value key=value, to the end of the region
  };
  enum class PlainWord : uint8_t { kNone, kKey, kValue };
  void Enter(State state);
  // A name without a mark of its own behind it.
  bool EndsAnywhere() const {
    return context_.format.call_open.empty() && !context_.format.open_is_call;
  }
  ReadStep PushName(char c);
  ReadStep TakeNameByte(char c);
  ReadStep EndName(int mark);
  ReadStep PushBeforeArguments(char c);
  ReadStep PushArguments(char c);
  ReadStep PushParams(char c);
  ReadStep PushKey(char c);
  ReadStep PushAttributes(char c);
  ReadStep PushBeforeValue(char c);
  ReadStep PushValue(char c);
  ReadStep PushPlain(char c);
  ReadStep BeginArguments(char c);
  ReadStep EndKey();
  ReadStep EndValue();
  ReadStep EndCall(ReadStep step);
  bool SetName();
  bool StartKey(std::string_view key);
  void TakeValueByte(char c);

  ReaderContext context_;
  State state_ = State::kName;
  MarkMatcher matcher_;
  JsonScanner scanner_;
  std::string name_;
  std::string id_;
  std::string text_;  // what a state collects
  std::string released_;
  std::set<std::string, std::less<>> keys_;
  TypeSet types_;
  PlainWord plain_word_ = PlainWord::kNone;
  bool is_fenced_ = false;
  bool may_lack_arguments_ = false;
  bool arguments_end_ = false;
  // Of a value.
  bool is_streamed_ = false;  // its text goes out as it comes
  bool is_first_byte_ = false;
  bool holds_newline_ = false;
};

// [name(key="value"), ...] of Python, or name{key:value} of the Gemma models.
class LiteralCallReader : public CallReader {
 public:
  // in_list: the first byte is '['; else a single call.
  LiteralCallReader(const ReaderContext& context, bool in_list);
  ReadStep Push(char c) override;
  void Finish(bool at_end) override;

 private:
  enum class State : uint8_t {
    kStart,
    kItem,
    kName,
    kArgument,  // a key, a value without key, or the end
    kKey,
    kValue,
    kAfterValue,
    kObject,  // Gemma
    kAfterItem,
  };
  bool is_gemma() const { return !context_.format.quote.empty(); }
  ReadStep BeginCall(char open);
  ReadStep PushKey(char c);
  ReadStep PushValue(char c);
  ReadStep BeginPositional(char c);
  bool StartKey(const std::string& key);
  ReadStep EndArgument(char c);
  ReadStep EndCall();

  ReaderContext context_;
  State state_;
  bool in_list_;
  LiteralScanner scanner_;
  std::string name_;
  std::string key_;
  std::string json_;
  size_t num_positional_ = 0;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace tq

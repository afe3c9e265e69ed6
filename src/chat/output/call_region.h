// CallRegion: what stands between the marks that open and close tool calls: calls, one behind the
// other. Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "chat/output/argument_types.h"
#include "chat/output/call_reader.h"
#include "chat/output/call_sink.h"
#include "chat/output/mark_matcher.h"
#include "chat/output/tool_format.h"

namespace tq {

class CallRegion {
 public:
  enum class Step : uint8_t {
    kMore,
    kCallEnd,  // a call, or a list of them, ended with this byte
    kDone,     // the region did
    kLeave,    // it ended before the last unread() bytes
    kBad,      // they are neither part nor end of it
  };
  // All are borrowed.
  CallRegion(const ToolFormat& format, const ToolTypes& types, CallSink& sink);

  // opening: the mark was read; else the text itself may be one (ToolFormat::bare).
  void Open(bool has_mark);
  // Harmony: the arguments of a call whose name was in the header.
  void OpenArguments(std::string name);
  Step Push(char c);
  size_t unread() const { return unread_; }
  // Ends what is open, as far as it goes: at the end of the text or where it turns bad. Returns
  // whether all of it were whole calls, and the region may end here.
  bool Finish(bool at_end);

 private:
  Step PushBetween(char c);
  Step StartReader(std::unique_ptr<CallReader> reader, char c);
  Step PushReader(char c);
  ReaderContext Context() const { return {format_, types_, sink_, only_known_names_}; }

  const ToolFormat& format_;
  const ToolTypes& types_;
  CallSink& sink_;
  MarkMatcher matcher_;
  std::string released_;
  std::unique_ptr<CallReader> reader_;
  size_t unread_ = 1;
  bool only_known_names_ = false;
  bool has_call_ = false;
  bool is_message_ = false;  // OpenArguments
};

}  // namespace tq

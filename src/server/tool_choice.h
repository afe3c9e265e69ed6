// tool_choice in the words of three APIs: whether an answer may be, or has to be, a call.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "chat/messages.h"
#include "chat/request_json.h"

namespace tq::server {

struct ToolChoice {
  bool forced = false;             // the answer is a call
  std::vector<std::string> names;  // forced: of one of these tools; empty: of any
  bool one_call = false;           // at most one
};

// tool_choice: "auto"; "none", which hides the tools; "required" and "any"; a named tool
// ({"type": "function" | "tool" | "custom", "name"}, also with the name inside); "allowed_tools":
// with mode "auto" the other tools are hidden, with "required" the call is one of those.
// parallel_tool_calls and disable_parallel_tool_use. Errors: a tool that is not offered, none at
// all where a call must come.
Result<ToolChoice> ReadToolChoice(const RequestNode& body, ChatInput& input);

}  // namespace tq::server

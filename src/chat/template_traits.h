// TemplateTraits: what a chat template can take, found by trying it. Templates raise, print Python
// values or say nothing when they get messages that they were not written for; what is sent to them
// is changed only where these traits say so (template_messages.h).
#pragma once

#include <string>

#include "base/json.h"
#include "chat/chat_template.h"

namespace tq {

struct TemplateTraits {
  bool takes_system = true;             // a system message in front
  bool takes_system_run = true;         // several of them
  bool takes_late_system = true;        // one behind a user message
  bool takes_developer = true;          // the role "developer", as something of its own
  bool takes_user_run = true;           // two user messages in a row
  bool takes_assistant_run = true;      // two assistant messages in a row
  bool takes_user_after_tool = true;    // a user message behind a tool result
  bool takes_images = false;            // a list of parts with images in user messages
  bool takes_tool_images = false;       // the same in tool results
  bool takes_tools = true;              // shows the tools that are offered
  bool takes_calls = true;              // shows calls and results
  bool takes_long_call_ids = true;      // false: only nine letters or digits
  bool takes_text_arguments = true;     // calls whose arguments are a text
  bool takes_object_arguments = true;   // calls whose arguments are an object
  bool takes_thought_text_call = true;  // reasoning, text and calls in one message
  bool wants_null_content = false;      // calls without text are shown only when content is none
  bool wants_tool_name = false;         // tool results without name lack it in the prompt
  bool knows_thoughts = false;          // what it does with reasoning is meant so
  std::string reasoning_key;            // where reasoning is read; empty: nowhere
};

// variables: the special tokens. Tries are cheap and limited, whatever the template does.
TemplateTraits FindTemplateTraits(const ChatTemplate& chat_template, const OrderedJson& variables);

}  // namespace tq

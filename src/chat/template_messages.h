// ChatInput -> the `messages` and `tools` that a chat template gets.
#pragma once

#include <span>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "chat/messages.h"
#include "chat/template_traits.h"

namespace tq {

// The messages as this template can take them; unchanged for one that takes everything.
//   developer                -> system
//   several system in front  -> one, joined by blank lines; -> the start of the first user message
//   system later on          -> user, where it stands: what stands before it must not change
//   two of a role in a row   -> one, joined by blank lines
//   user behind tool result  -> more text of the result
//   images in tool results   -> a user message behind the results
// A message that was joined with another loses its GeneratedTurn.
// Errors: kInvalidArgument for images when the template takes none.
Result<std::vector<ChatMessage>> FitMessages(std::vector<ChatMessage> messages,
                                             const TemplateTraits& traits);

// As Transformers users write them: content is a text, or a list of {"type": "text", "text"} and
// {"type": "image"} when there are images; arguments of calls are objects.
OrderedJson TemplateMessages(std::span<const ChatMessage> messages, const TemplateTraits& traits);
// Null when there are none. Deferred tools are not shown.
OrderedJson TemplateTools(std::span<const ToolSpec> tools);

}  // namespace tq

// Requests of three APIs -> ChatInput. Unknown fields are ignored; tools that run on the API
// owner's machines, and blocks that only it can read, are left out with a note. One file per API.
//
// All three: text parts of one message are joined as they are; a tool without description gets "",
// one without parameters an object without properties; calls without id get one; results are put
// behind their call (tool_history.h).
// Errors: kInvalidArgument, one line: path in the request, expected, found.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "chat/messages.h"
#include "chat/request_json.h"

namespace tq {

enum class ChatApi : uint8_t { kOpenAi, kAnthropic, kResponses };
// "openai", "anthropic", "responses"; nullopt for another name.
std::optional<ChatApi> ParseApiName(std::string_view name);

// {"messages", "tools"} of /v1/chat/completions. The list alone will do.
Result<ChatInput> ParseOpenAiChat(const OrderedJson& body);

// {"system", "messages", "tools"} of /v1/messages. Left out: the billing line that Claude Code puts
// in front of its system prompt (it differs in every session and would spoil the prefix cache).
// system blocks are joined by blank lines; a system message inside `messages` stays where it is.
// Tools with defer_loading are shown by the tool result that refers to them. tool_result blocks
// come before the text of their message.
Result<ChatInput> ParseAnthropicChat(const OrderedJson& body);

// {"instructions", "input", "tools"} of /v1/responses. `earlier`: the items of the conversation
// that previous_response_id names, null for none. Reasoning, text and calls that follow each other
// become one assistant message.
Result<ChatInput> ParseResponsesChat(const OrderedJson& body,
                                     const OrderedJson& earlier = OrderedJson());

// By its keys.
ChatApi DetectChatApi(const OrderedJson& body);

// JSON text in any of the three shapes. `where` names it in messages. Errors also: kCorrupt (no
// JSON).
Result<ChatInput> ParseChatInput(std::string_view text, std::string_view where,
                                 std::optional<ChatApi> api = std::nullopt);

// Shared by the three files.
namespace request {

// Appends a text part; an empty text gives none.
void AddText(ChatMessage& message, std::string text);
// "data:image/png;base64,..." is taken apart.
ImageRef ImageOfUrl(std::string url, std::string detail);
// {"name", "description", "parameters", ...}, completed. Errors: no name, parameters that are no
// object.
Result<OrderedJson> CompleteFunction(const RequestNode& function);
// The function with one text that stands for a tool that takes free text.
OrderedJson CustomFunction(std::string_view name, std::string_view description,
                           const OrderedJson& format);
// arguments of a call: a text, or an object. "" becomes "{}", and a text of a text that holds an
// object is unwrapped once.
Result<std::string> CallArguments(const RequestNode& arguments);
// Last step: ids, pairs and order of calls and results.
Result<ChatInput> Finish(ChatInput input);

}  // namespace request
}  // namespace tq

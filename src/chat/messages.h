// Messages: one typed conversation, whatever API it came from (parse_messages.h reads them,
// template_messages.h writes what chat templates expect). Plain data; images are never decoded
// here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/status.h"

namespace tq {

enum class ChatRole : uint8_t { kSystem, kDeveloper, kUser, kAssistant, kTool };
std::string_view RoleName(ChatRole role);

// Where a picture is; exactly one of url, file_id and data is set.
struct ImageRef {
  std::string url;         // as sent, when it is no data: URL
  std::string file_id;     // of a file that the server keeps
  std::string media_type;  // "image/png": of data
  std::string data;        // base64 as sent
  std::string detail;      // "low", "high", "auto" or nothing
};

struct ContentPart {
  enum class Kind : uint8_t { kText, kImage };
  Kind kind = Kind::kText;
  std::string text;
  ImageRef image;
};

struct ToolCall {
  std::string id;
  std::string name;       // as the model wrote it: ToolSpec::name
  std::string arguments;  // JSON text of an object; free text when the model or client sent that
};

// What a model read last and wrote for one assistant turn. Kept by who ran the model and given back
// with the message, so that the next prompt can repeat it byte for byte (prompt.h); made by
// RenderedPrompt::Turn.
struct GeneratedTurn {
  std::string history_end;   // what the prompt that was answered ended with, before
  std::string opening;       // what add_generation_prompt added to it
  uint64_t prompt_hash = 0;  // of all of that prompt
  std::string text;          // all that was generated, special tokens too, but for the end token
  int64_t tag = 0;           // the owner's; comes back in RenderedPrompt::repeated
};

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::vector<ContentPart> content;
  std::string name;                        // of the author or, kTool, of the function; may be empty
  std::string reasoning;                   // kAssistant
  std::string reasoning_signature;         // kAssistant, Anthropic: as sent
  std::vector<ToolCall> tool_calls;        // kAssistant
  std::string tool_call_id;                // kTool
  bool is_error = false;                   // kTool: the tool failed
  std::optional<GeneratedTurn> generated;  // kAssistant

  // Texts of all parts, one behind the other.
  std::string Text() const;
  bool HasImages() const;
};

// A function that the model may call.
struct ToolSpec {
  std::string name;          // as the model sees it: with a name space "space__function"
  std::string name_space;    // Responses API: the container it came in, else empty
  bool is_custom = false;    // takes free text; the model sees a function with one text "input"
  bool is_deferred = false;  // Anthropic: not shown before a tool_reference to it
  OrderedJson function;      // {"name", "description", "parameters", ...}
};

struct ChatInput {
  std::vector<ChatMessage> messages;
  std::vector<ToolSpec> tools;
  std::vector<std::string> notes;  // what was left out or mended: one line each, for a log
};

ChatMessage MakeMessage(ChatRole role, std::string_view content);
// role: "system", "user" or "assistant".
ChatMessage MakeMessage(std::string_view role, std::string_view content);

// {"input": text}: how the free text of a custom tool looks to the model.
std::string CustomArguments(std::string_view text);

// A text that is equal for turns that say the same: content, calls (name and arguments, whatever
// their spacing) and reasoning. The key under which to keep a GeneratedTurn: a client that changed
// the turn does not find it. with_reasoning = false: for clients that do not send thoughts back.
std::string TurnKey(const ChatMessage& message, bool with_reasoning);

}  // namespace tq

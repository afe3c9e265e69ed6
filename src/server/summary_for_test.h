// What an answer says, whichever API it came through, as lines that can be compared.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/server_for_test.h"

namespace tq::server {

// Blanks around a text are the template's, not the answer's.
inline std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

// What an answer says, one line each: "reasoning X", "text X", "call NAME ARGUMENTS", "end WHY".
class Summary {
 public:
  void Add(const std::string& kind, const std::string& text, bool new_item = true) {
    if (text.empty()) return;
    if (new_item || items_.empty() || items_.back().first != kind) {
      items_.emplace_back(kind, text);
    } else {
      items_.back().second += text;
    }
  }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const auto& [kind, text] : items_) {
      const std::string trimmed = Trim(text);
      if (!trimmed.empty()) lines.push_back(kind + " " + trimmed);
    }
    return lines;
  }

 private:
  std::vector<std::pair<std::string, std::string>> items_;
};

inline std::string TextOf(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

inline void AddChat(const Json& choice, const Json& message, Summary& out) {
  out.Add("reasoning", TextOf(message, "reasoning_content"), false);
  out.Add("text", TextOf(message, "content"), false);
  for (const Json& call : message.value("tool_calls", Json::array())) {
    const Json& function = call["function"];
    const bool begins = function.contains("name");
    out.Add("call", (begins ? TextOf(function, "name") + " " : "") + TextOf(function, "arguments"),
            begins);
  }
  out.Add("end", TextOf(choice, "finish_reason"));
}

inline void AddMessage(const Json& message, Summary& out) {
  for (const Json& block : message["content"]) {
    out.Add("reasoning", TextOf(block, "thinking"));
    out.Add("text", TextOf(block, "text"));
    if (block["type"] == "tool_use") {
      out.Add("call", TextOf(block, "name") + " " + block["input"].dump());
    }
  }
  out.Add("end", TextOf(message, "stop_reason"));
}

inline void AddResponse(const Json& response, Summary& out) {
  for (const Json& item : response["output"]) {
    for (const Json& part : item.value("summary", Json::array())) {
      out.Add("reasoning", TextOf(part, "text"));
    }
    for (const Json& part : item.value("content", Json::array())) {
      out.Add("text", TextOf(part, "text"));
    }
    if (item["type"] == "function_call") {
      out.Add("call", TextOf(item, "name") + " " + TextOf(item, "arguments"));
    }
  }
  out.Add("end", TextOf(response, "status"));
}

inline void AddEvent(const Json& event, Summary& out) {
  if (event.contains("choices")) {
    for (const Json& choice : event["choices"]) {
      const Json delta = choice.value("delta", Json::object());
      AddChat(choice,
              delta.contains("content") || !choice.contains("text")
                  ? delta
                  : Json{{"content", choice["text"]}},
              out);
    }
  }
  const std::string type = TextOf(event, "type");
  if (type == "content_block_start") {
    out.Add(event["content_block"]["type"] == "tool_use"   ? "call"
            : event["content_block"]["type"] == "thinking" ? "reasoning"
                                                           : "text",
            TextOf(event["content_block"], "name") + " ");
  } else if (type == "content_block_delta") {
    const Json& delta = event["delta"];
    for (const auto& [key, kind] : {std::pair("thinking", "reasoning"), std::pair("text", "text"),
                                    std::pair("partial_json", "call")}) {
      if (delta.contains(key)) out.Add(kind, TextOf(delta, key), false);
    }
  } else if (type == "message_delta") {
    out.Add("end", TextOf(event["delta"], "stop_reason"));
  } else if (type == "response.completed" || type == "response.incomplete") {
    AddResponse(event["response"], out);
  }
  if (event.contains("error") || type == "response.failed") out.Add("end", "error");
}

// The arguments of a call, written as one writes JSON, so that spaces do not count.
inline std::vector<std::string> Normal(std::vector<std::string> lines) {
  for (std::string& line : lines) {
    const size_t brace = line.find('{');
    if (!line.starts_with("call ") || brace == std::string::npos) continue;
    const auto arguments = ParseJson(line.substr(brace), "arguments");
    if (arguments.ok()) line = line.substr(0, brace) + arguments->dump();
  }
  return lines;
}

inline std::vector<std::string> SummaryOf(const Json& whole) {
  Summary out;
  if (whole.contains("error") && whole["error"].is_object()) {
    out.Add("end", "error");
  } else if (whole.contains("choices")) {
    const Json& choice = whole["choices"][0];
    AddChat(choice,
            choice.contains("message") ? choice["message"] : Json{{"content", choice["text"]}},
            out);
  } else if (whole.contains("output")) {
    AddResponse(whole, out);
  } else {
    AddMessage(whole, out);
  }
  return Normal(out.Lines());
}

struct StreamSummary {
  std::vector<std::string> lines;   // the summary
  std::vector<std::string> events;  // their kinds, repeated ones once
  Json usage;
};

inline StreamSummary StreamOf(const std::string& body) {
  // Those that a client of today wants as well, and that the recorded server does not send.
  const std::set<std::string> more = {
      "response.in_progress", "response.content_part.added", "response.content_part.done",
      "response.reasoning_summary_part.added", "response.reasoning_summary_part.done"};
  StreamSummary out;
  Summary summary;
  for (const auto& [name, text] : tq::test::SseEvents(body)) {
    if (text == "[DONE]") {
      out.events.push_back(text);
      continue;
    }
    const auto event = ParseJson(text, "event");
    EXPECT_TRUE(event.ok()) << text;
    if (!event.ok()) continue;
    AddEvent(*event, summary);
    for (const char* holder : {"message", "response"}) {
      const Json inside = event->value(holder, Json());
      if (inside.is_object() && inside.contains("usage")) out.usage = inside["usage"];
    }
    if (event->contains("choices") && event->value("usage", Json()).is_object()) {
      out.usage = (*event)["usage"];
    }
    if (name.empty() || more.contains(name)) continue;
    if (out.events.empty() || out.events.back() != name) out.events.push_back(name);
  }
  out.lines = Normal(summary.Lines());
  return out;
}

}  // namespace tq::server

// For tests: whole answers through an OutputParser, however they are cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/output/output_parser.h"

namespace tq {

inline ToolSpec MakeTool(const std::string& name, const std::string& properties) {
  ToolSpec tool;
  tool.name = name;
  OrderedJson schema = {{"type", "object"}};
  schema["properties"] = *ParseOrderedJson(properties, name);
  tool.function = {{"name", name}, {"description", "d"}, {"parameters", schema}};
  return tool;
}

// Neighbours of a kind as one event.
inline std::vector<OutputEvent> Merge(const std::vector<OutputEvent>& events) {
  std::vector<OutputEvent> merged;
  for (const OutputEvent& event : events) {
    const bool joins = !merged.empty() && merged.back().kind == event.kind &&
                       event.kind != OutputEvent::Kind::kToolBegin &&
                       event.kind != OutputEvent::Kind::kToolEnd &&
                       merged.back().tool_index == event.tool_index;
    if (joins) {
      merged.back().text += event.text;
    } else {
      merged.push_back(event);
    }
  }
  return merged;
}

// One line an event: "text: ...", "thought: ...", "call 0 name: arguments", with " (cut)".
inline std::string Show(const std::vector<OutputEvent>& events) {
  std::string shown;
  for (const OutputEvent& event : Merge(events)) {
    const std::string index = std::to_string(event.tool_index);
    switch (event.kind) {
      case OutputEvent::Kind::kText:
        shown += "text: " + event.text + "\n";
        break;
      case OutputEvent::Kind::kReasoning:
        shown += "thought: " + event.text + "\n";
        break;
      case OutputEvent::Kind::kToolBegin:
        shown += "call " + index + " " + event.text;
        shown += (event.tool_id.empty() ? "" : " [" + event.tool_id + "]") + ": ";
        break;
      case OutputEvent::Kind::kToolArguments:
        shown += event.text;
        break;
      case OutputEvent::Kind::kToolEnd:
        shown += event.complete ? "\n" : " (cut)\n";
        break;
    }
  }
  return shown;
}

// Pieces that begin at the given places.
inline std::vector<OutputEvent> ParsePieces(const OutputParserOptions& options,
                                            const std::vector<ToolSpec>& tools,
                                            std::string_view text,
                                            const std::vector<size_t>& cuts) {
  OutputParser parser(options, tools);
  std::vector<OutputEvent> all;
  size_t at = 0;
  const auto feed = [&](size_t end) {
    std::vector<OutputEvent> events;  // a new one each time, as a stream does it
    parser.Feed(text.substr(at, end - at), events);
    all.insert(all.end(), events.begin(), events.end());
    at = end;
  };
  for (const size_t cut : cuts) feed(cut);
  feed(text.size());
  std::vector<OutputEvent> events;
  parser.Finish(events);
  all.insert(all.end(), events.begin(), events.end());
  return all;
}

// The whole text at once; every cut in two and byte by byte must give the same.
inline std::vector<OutputEvent> ParseAll(const OutputParserOptions& options,
                                         const std::vector<ToolSpec>& tools,
                                         std::string_view text) {
  const std::vector<OutputEvent> whole = Merge(ParsePieces(options, tools, text, {}));
  const std::string shown = Show(whole);
  std::vector<size_t> every;
  for (size_t cut = 1; cut < text.size(); ++cut) {
    every.push_back(cut);
    EXPECT_EQ(Show(ParsePieces(options, tools, text, {cut})), shown) << text << "\ncut " << cut;
  }
  EXPECT_EQ(Show(ParsePieces(options, tools, text, every)), shown) << text << "\nbyte by byte";
  return whole;
}

}  // namespace tq

// Answers of models: any text in any syntax, however it is cut, gives the same events, and calls
// that are begun end.
// Input: syntax, switches, seed of the cuts, then the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "chat/output/output_parser.h"
#include "chat/output/tool_greedy.h"

namespace {

using Kind = tq::OutputEvent::Kind;

std::vector<tq::ToolSpec> Tools() {
  tq::ToolSpec tool;
  tool.name = "f";
  tool.function = {{"name", "f"}};
  tool.function["parameters"]["properties"] = {
      {"s", {{"type", "string"}}}, {"n", {{"type", "integer"}}}, {"o", {{"type", "object"}}}};
  return {tool};
}

// Events as one text; calls must be well formed.
std::string Flatten(const std::vector<tq::OutputEvent>& events) {
  std::string all;
  int calls = 0;
  bool is_open = false;
  Kind last = Kind::kToolEnd;
  std::string arguments;
  for (const tq::OutputEvent& event : events) {
    const bool is_text = event.kind == Kind::kText || event.kind == Kind::kReasoning;
    if (is_open == (is_text || event.kind == Kind::kToolBegin)) std::abort();
    if (event.kind != last || event.kind == Kind::kToolBegin) {
      all += static_cast<char>('0' + static_cast<int>(event.kind));
    }
    last = event.kind;
    all += event.text;
    if (event.kind == Kind::kToolBegin) {
      if (event.text.empty()) std::abort();
      ++calls;
      arguments.clear();
    }
    if (event.kind == Kind::kToolArguments) arguments += event.text;
    if (event.kind == Kind::kToolEnd) {
      all += event.complete ? '+' : '-';
      if (event.complete && arguments.find('{') == std::string::npos) std::abort();
    }
    if (!is_text && event.tool_index != calls - 1) std::abort();
    is_open = !is_text && event.kind != Kind::kToolEnd;
  }
  if (is_open) std::abort();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  static const std::vector<tq::ToolSpec> kTools = Tools();
  tq::OutputParserOptions options;
  constexpr int kNumSyntaxes = static_cast<int>(tq::ToolSyntax::kHarmony) + 1;
  options.syntax.tools = static_cast<tq::ToolSyntax>(data[0] % kNumSyntaxes);
  options.syntax.reasoning = static_cast<tq::ReasoningSyntax>(data[1] & 7);
  options.stream_arguments = (data[1] & 8) != 0;
  options.starts_in_reasoning = (data[1] & 16) != 0;
  options.parse_reasoning = (data[1] & 32) != 0;
  options.keep_space_between_calls = (data[1] & 64) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);

  std::string wanted;
  for (int round = 0; round < 3; ++round) {
    tq::OutputParser parser(options, kTools);
    std::vector<tq::OutputEvent> events;
    uint32_t state = data[2];
    for (size_t at = 0; at < text.size();) {
      state = state * 1664525U + 1013904223U;
      const size_t length = round == 0 ? text.size() : round == 1 ? 1 : 1 + (state >> 8) % 7;
      parser.Feed(text.substr(at, length), events);
      at += length;
    }
    parser.Finish(events);
    const std::string found = Flatten(events);
    if (round > 0 && found != wanted) std::abort();
    wanted = found;
  }
  tq::ToolSyntaxTracker tracker("<tool_call>", "</tool_call>");
  tracker.Feed(text);
  return 0;
}

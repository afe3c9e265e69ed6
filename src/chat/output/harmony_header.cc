#include "chat/output/harmony_header.h"

#include "chat/output/json_scanner.h"

namespace tq {
namespace {

// What follows `mark`, up to white space or the next mark.
std::string_view WordBehind(std::string_view header, std::string_view mark) {
  const size_t at = header.find(mark);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = header.substr(at + mark.size());
  return rest.substr(0, rest.find_first_of(" \t\r\n<"));
}

}  // namespace

HarmonyHeader ParseHarmonyHeader(std::string_view header, bool calls_tools) {
  HarmonyHeader result;
  std::string_view recipient = WordBehind(header, "to=");
  constexpr std::string_view kFunctions = "functions.";
  const bool is_tool = !recipient.empty() && recipient != "user" && recipient != "assistant" &&
                       recipient != "all" && recipient != "self";
  if (is_tool && calls_tools) {
    if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
    result.call = recipient;
  }
  result.is_reasoning = result.call.empty() &&
                        (recipient == "self" || WordBehind(header, "<|channel|>") == "analysis");
  return result;
}

bool MayBeHarmonyHeader(std::string_view text) {
  constexpr size_t kMaxBytes = 256;
  if (text.size() > kMaxBytes) return false;
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  for (const std::string_view start :
       {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "assistant", "to="}) {
    if (start.starts_with(text) || text.starts_with(start)) return true;
  }
  return false;
}

}  // namespace tq

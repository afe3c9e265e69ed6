// HarmonyHeader: what stands in front of <|message|> in the harmony format (gpt-oss; other models
// with recipients): "<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json".
// Private to this folder.
#pragma once

#include <string>
#include <string_view>

namespace tq {

struct HarmonyHeader {
  bool is_reasoning = false;
  std::string call;  // the name of the tool that the message calls; empty: none
};

// header: without <|message|>. calls_tools: recipients other than the user are tools.
HarmonyHeader ParseHarmonyHeader(std::string_view header, bool calls_tools);

// Whether a text may be the beginning of a header, as far as it goes.
bool MayBeHarmonyHeader(std::string_view text);

}  // namespace tq
